// Charts with one dot per episode: strips by policy label, and one number against another. A click selects.

const NEAR = 9; // pixels from a dot that still mean it

class EpisodesChart extends FigureChart {
  constructor(stage) {
    super(stage);
    takesKeys(this.box);
    this.box.addEventListener('keydown', (event) => this.onKey(event));
    this.box.addEventListener('blur', () => { this.aimed = null; this.stage.tip.hide(); this.ring(); });
  }

  prepare() {
    this.aimed = null;
    this.groups = this.words.groups.map((group, place) => {
      const [index, x] = [this.array(group.index), this.array(group.x)];
      return { ...group, index, x, y: this.heights(group, place) };
    });
  }

  isEmpty() { return this.words.groups.every((group) => group.x[1] === 0); }
  keys() { return this.groups; }
  data() { return [[0, 1], [null, null]]; }
  readings(group, i) { return [{ name: this.words.x_label || this.words.unit, value: reading(group.x[i]) }]; }

  plain(axes, x, y) {
    return {
      cursor: { show: false }, axes, series: [{}, { points: { show: false } }],
      scales: { x: { time: false, range: x }, y: { range: y } },
      hooks: { drawAxes: [(u) => this.paint(u)], draw: [() => this.ring()] },
    };
  }

  paint(u) {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const many = this.groups.some((g) => g.x.length > 300); // thousands of circles would take longer than a frame
    const radius = (many ? 1.5 : 3) * ratio;
    ctx.save();
    for (const group of this.groups) {
      ctx.fillStyle = this.color(group.color);
      ctx.globalAlpha = 0.65;
      for (let i = 0; i < group.x.length; i++) {
        const [x, y] = [u.valToPos(group.x[i], 'x', true), u.valToPos(group.y[i], 'y', true)];
        if (many) { ctx.fillRect(Math.round(x - radius), Math.round(y - radius), 2 * radius, 2 * radius); continue; }
        ctx.beginPath();
        ctx.arc(x, y, radius, 0, 2 * Math.PI);
        ctx.fill();
      }
      ctx.globalAlpha = 1;
      this.over(u, group, ratio);
    }
    ctx.restore();
  }

  over() {}

  // The dot under the pointer: [group, place in it], or null.
  find(event) {
    const box = this.plot.over.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let best = NEAR * NEAR;
    let found = null;
    for (const group of this.groups) {
      for (let i = 0; i < group.x.length; i++) {
        const dx = this.plot.valToPos(group.x[i], 'x') - px;
        const dy = this.plot.valToPos(group.y[i], 'y') - py;
        if (dx * dx + dy * dy < best) { best = dx * dx + dy * dy; found = [group, i]; }
      }
    }
    return found;
  }

  tell(found, x, y) {
    const [group, i] = found;
    this.stage.tip.show(group.names[i], [
      { color: this.color(group.color), name: 'policy', value: group.name }, ...this.readings(group, i),
    ], x, y);
  }

  hover(event) {
    const found = this.find(event);
    this.plot.over.style.cursor = found ? 'pointer' : '';
    if (found) this.tell(found, event.clientX, event.clientY);
    else this.stage.tip.hide();
  }

  press(event) {
    const found = this.find(event);
    if (found) this.stage.select(this.words.key, found[0].index[found[1]]);
  }

  // Arrows go from dot to dot along the x axis, Enter selects.
  onKey(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by && event.key !== 'Enter') return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === 'Enter') {
      if (this.aimed) this.stage.select(this.words.key, this.aimed[0].index[this.aimed[1]]);
      return;
    }
    const dots = this.groups.flatMap((g) => Array.from(g.x, (_, i) => [g, i])).sort((a, b) => a[0].x[a[1]] - b[0].x[b[1]]);
    if (!dots.length) return;
    const now = this.aimed ? dots.findIndex(([g, i]) => g === this.aimed[0] && i === this.aimed[1]) : -by;
    this.aimed = dots[Math.max(0, Math.min(dots.length - 1, now + by))];
    const box = this.plot.over.getBoundingClientRect();
    const [group, i] = this.aimed;
    this.tell(this.aimed, box.left + this.plot.valToPos(group.x[i], 'x'), box.top + this.plot.valToPos(group.y[i], 'y'));
    this.ring();
  }

  // Rings are elements above the drawing: they move without drawing it again.
  ring() {
    if (!this.plot) return;
    this.plot.over.querySelectorAll('.rlnb-ring').forEach((el) => el.remove());
    const marks = this.stage.marks();
    for (const group of this.groups) {
      group.index.forEach((index, i) => {
        const mark = marks.find((one) => one.index === index);
        const aimed = this.aimed && this.aimed[0] === group && this.aimed[1] === i;
        if (!mark && !aimed) return;
        const el = make('div', 'rlnb-ring', this.plot.over);
        el.style.left = `${this.plot.valToPos(group.x[i], 'x')}px`;
        el.style.top = `${this.plot.valToPos(group.y[i], 'y')}px`;
        if (mark && mark.text) make('span', '', el, mark.text);
      });
    }
  }
}

class StripsChart extends EpisodesChart {
  heights(group, place) { return Float32Array.from(this.array(group.offset), (v) => -place + 0.62 * v); }
  signature() { return [this.words.unit, this.words.groups.map((g) => g.name), this.labelWidth()]; }
  keys() { return []; } // the strips bear their names
  height() { return Math.max(this.stage.height, 40 + 24 * this.words.groups.length); }

  labelWidth() {
    const ctx = document.createElement('canvas').getContext('2d');
    ctx.font = axisStyle(this.stage.root).font;
    const widest = Math.max(0, ...this.words.groups.map((g) => ctx.measureText(this.short(g.name)).width));
    return Math.ceil(widest) + 12;
  }

  short(name) { return name.length > 18 ? `${name.slice(0, 17)}…` : name; }

  options(style) {
    const count = this.words.groups.length;
    return this.plain([
      xAxis(style, this.words.unit),
      {
        ...style, size: this.labelWidth(), grid: { show: false }, ticks: { show: false },
        splits: () => this.groups.map((_, i) => -i), values: (u, vs) => vs.map((v) => this.short(this.groups[-v].name)),
      },
    ], () => around((function* all(groups) { for (const g of groups) yield* g.x; })(this.groups), false), () => [0.5 - count, 0.5]);
  }

  // The middle half as a bar, the mean as a line across it.
  over(u, group, ratio) {
    if (group.mean === null) return;
    const { ctx } = u;
    const y = u.valToPos(-this.groups.indexOf(group), 'y', true);
    const half = 0.38 * Math.abs(u.valToPos(0, 'y', true) - u.valToPos(1, 'y', true));
    const [a, b] = group.quartiles.map((v) => u.valToPos(v, 'x', true));
    const mean = u.valToPos(group.mean, 'x', true);
    ctx.globalAlpha = 0.16;
    ctx.fillRect(a, y - half, Math.max(b - a, ratio), 2 * half);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = this.ink('--rlnb-ink');
    ctx.lineWidth = 2 * ratio;
    ctx.beginPath();
    ctx.moveTo(mean, y - half);
    ctx.lineTo(mean, y + half);
    ctx.stroke();
  }

  readings(group, i) {
    return [...super.readings(group, i), { name: `mean of ${group.count.toLocaleString('en')}`, value: reading(group.mean) }];
  }
}

class PointsChart extends EpisodesChart {
  heights(group) { return this.array(group.y); }
  signature() { return [this.words.x_label, this.words.y_label]; }

  readings(group, i) { return [...super.readings(group, i), { name: this.words.y_label, value: reading(group.y[i]) }]; }

  options(style) {
    const range = (axis) => around((function* all(groups) { for (const g of groups) yield* g[axis]; })(this.groups), false);
    return this.plain([xAxis(style, this.words.x_label), yAxis(style, this.words.y_label)], () => range('x'), () => range('y'));
  }
}
