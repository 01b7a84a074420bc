// Charts of counts: histograms and coverage maps.

class BarsChart extends FigureChart {
  prepare() {
    this.edges = this.array(this.words.edges);
    const under = new Float32Array(Math.max(0, this.edges.length - 1));
    this.layers = this.words.layers.map((layer) => {
      const y = this.array(layer.y);
      const from = this.words.stacked ? under.slice() : null;
      if (from) y.forEach((v, i) => { under[i] += v; });
      return { ...layer, y, from };
    });
    this.most = Math.max(1, ...(this.words.stacked ? [under] : this.layers.map((l) => l.y)).map((y) => y.reduce((a, b) => Math.max(a, b), 0)));
  }

  isEmpty() { return this.words.edges[1] < 2 || !this.words.layers.length; }
  keys() { return this.layers; }
  signature() { return [this.words.log, this.words.x_label]; }
  data() { return [[0, 1], [null, null]]; }

  // Logarithmic counts are drawn by their exponent, half a count being the floor: one step must show as a bar.
  level(count) { return this.words.log ? (count > 0 ? Math.log10(count) : Math.log10(0.5)) : count; }

  options(style) {
    const { log } = this.words;
    const ends = () => (this.edges.length > 1 ? [this.edges[0], this.edges[this.edges.length - 1]] : [0, 1]);
    const top = () => (log ? [Math.log10(0.5), Math.max(1, Math.log10(this.most) + 0.1)] : [0, this.most * 1.06]);
    const decades = {
      splits: () => Array.from({ length: Math.floor(top()[1]) + 1 }, (_, i) => i),
      values: (u, vs) => vs.map((v) => compact(10 ** v)),
    };
    return {
      cursor: { show: true, x: true, y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
      scales: { x: { time: false, range: ends }, y: { range: top } },
      axes: [xAxis(style, this.words.x_label), { ...yAxis(style, this.words.unit), ...(log ? decades : {}) }],
      series: [{}, { points: { show: false } }],
      hooks: { drawAxes: [(u) => this.paint(u)] },
    };
  }

  paint(u) {
    const { ctx } = u;
    const at = (v) => Math.round(u.valToPos(v, 'x', true));
    const up = (v) => u.valToPos(this.level(v), 'y', true);
    const floor = u.bbox.top + u.bbox.height;
    ctx.save();
    for (const { color, y, from } of this.layers) {
      ctx.fillStyle = ctx.strokeStyle = this.color(color);
      ctx.globalAlpha = from ? 0.75 : 0.28;
      y.forEach((v, i) => {
        if (!v) return;
        const foot = from && from[i] ? up(from[i]) : floor;
        const head = up(v + (from ? from[i] : 0));
        ctx.fillRect(at(this.edges[i]), head, at(this.edges[i + 1]) - at(this.edges[i]), foot - head);
      });
      if (from) continue;
      ctx.globalAlpha = 1;
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(at(this.edges[0]), floor);
      y.forEach((v, i) => {
        const head = v ? up(v) : floor;
        ctx.lineTo(at(this.edges[i]), head);
        ctx.lineTo(at(this.edges[i + 1]), head);
      });
      ctx.lineTo(at(this.edges[y.length]), floor);
      ctx.stroke();
    }
    ctx.restore();
  }

  hover(event) {
    if (this.isEmpty()) return;
    const x = this.plot.posToVal(event.clientX - this.plot.over.getBoundingClientRect().left, 'x');
    let bin = 0;
    while (bin < this.edges.length - 2 && x >= this.edges[bin + 1]) bin++;
    const rows = this.layers.map(({ name, color, y }) => ({ color: this.color(color), name, value: y[bin].toLocaleString('en') }));
    const between = `${reading(this.edges[bin])} to ${reading(this.edges[bin + 1])}`;
    this.stage.tip.show(`${between}: ${this.words.unit}`, rows, event.clientX, event.clientY);
  }
}

// One map of a coverage figure.
class MapChart extends FigureChart {
  prepare() {
    this.xs = this.array(this.words.x_edges);
    this.ys = this.array(this.words.y_edges);
    this.counts = this.array(this.words.counts);
  }

  isEmpty() { return this.words.x_edges[1] < 2; }
  keys() { return []; }
  signature() { return [this.words.x_label, this.words.y_label]; }
  data() { return [[0, 1], [null, null]]; }
  describe() {
    this.title.style.color = this.color(this.words.color);
  }

  options(style) {
    const ends = (edges) => (edges.length > 1 ? [edges[0], edges[edges.length - 1]] : [0, 1]);
    return {
      cursor: { show: false },
      scales: { x: { time: false, range: () => ends(this.xs) }, y: { range: () => ends(this.ys) } },
      axes: [xAxis(style, this.words.x_label), yAxis(style, this.words.y_label)],
      series: [{}, { points: { show: false } }],
      hooks: { drawAxes: [(u) => this.paint(u)] },
    };
  }

  paint(u) {
    const { ctx } = u;
    const rows = this.ys.length - 1;
    const left = Array.from(this.xs, (x) => Math.round(u.valToPos(x, 'x', true)));
    const top = Array.from(this.ys, (y) => Math.round(u.valToPos(y, 'y', true)));
    ctx.save();
    ctx.fillStyle = this.color(this.words.color);
    this.counts.forEach((count, k) => {
      if (!count) return;
      const i = Math.floor(k / rows);
      const j = k % rows;
      // The lightest shade is that of a single step and must still show.
      ctx.globalAlpha = 0.18 + 0.82 * (Math.log1p(count) / Math.log1p(this.words.most));
      ctx.fillRect(left[i], top[j + 1], left[i + 1] - left[i], top[j] - top[j + 1]);
    });
    ctx.restore();
  }

  hover(event) {
    if (this.isEmpty()) return;
    const box = this.plot.over.getBoundingClientRect();
    const cell = (edges, v) => Math.max(0, Math.min(edges.length - 2, edges.findIndex((edge) => edge > v) - 1));
    const i = cell(this.xs, this.plot.posToVal(event.clientX - box.left, 'x'));
    const j = cell(this.ys, this.plot.posToVal(event.clientY - box.top, 'y'));
    const range = (edges, k) => `${reading(edges[k])} to ${reading(edges[k + 1])}`;
    this.stage.tip.show(`${this.counts[i * (this.ys.length - 1) + j].toLocaleString('en')} steps`, [
      { name: this.words.x_label, value: range(this.xs, i) }, { name: this.words.y_label, value: range(this.ys, j) },
    ], event.clientX, event.clientY);
  }
}

// A coverage figure: a map for each label, on common axes.
class HeatChart {
  constructor(stage) {
    this.stage = stage;
    this.root = make('section', 'rlnb-chart', null);
    const head = make('header', 'rlnb-chart-head', this.root);
    this.title = make('strong', '', make('div', 'rlnb-chart-title', head));
    this.note = make('div', 'rlnb-legend rlnb-muted', head);
    this.grid = make('div', 'rlnb-maps', this.root);
    this.empty = make('div', 'rlnb-none rlnb-muted', this.root);
    this.maps = [];
  }

  update(words, numbers) {
    this.root.dataset.key = words.key;
    this.root.classList.toggle('rlnb-wide', words.wide);
    this.title.textContent = words.title;
    this.note.textContent = words.note;
    this.grid.setAttribute('role', 'group');
    this.grid.setAttribute('aria-label', words.said);
    this.empty.textContent = words.maps.length ? '' : words.empty;
    while (this.maps.length > words.maps.length) this.maps.pop().destroy();
    words.maps.forEach((map, i) => {
      if (!this.maps[i]) {
        this.maps[i] = new MapChart(this.stage);
        this.grid.appendChild(this.maps[i].root);
      }
      this.maps[i].update({
        ...words, ...map, kind: 'map', key: `${words.key}/${map.name}`, title: map.name, unit: map.share, wide: false,
        said: `${map.name}: ${map.share}`,
      }, numbers);
    });
  }

  rebuild() { this.maps.forEach((map) => map.rebuild()); }
  fit() { this.maps.forEach((map) => map.fit()); }
  placeCursor() {}
  destroy() {
    this.maps.forEach((map) => map.destroy());
    this.root.remove();
  }
}
