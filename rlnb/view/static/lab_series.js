// Charts along the steps of an episode: signed stacks and lines, with a cursor.

// Distances between ticks: there is no half step.
const WHOLE = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((power) => [power, 2 * power, 5 * power]);

class SeriesChart extends FigureChart {
  constructor(stage) {
    super(stage);
    takesKeys(this.box);
    this.box.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || !this.words.cursor || !this.x.length) return;
      event.preventDefault();
      event.stopPropagation();
      const at = this.stage.cursor();
      const place = at === null ? 0 : this.placeOf(at) + by;
      this.stage.moveCursor(this.x[Math.max(0, Math.min(this.x.length - 1, place))]);
    });
  }

  prepare() {
    this.x = this.array(this.words.x);
    this.layers = (this.words.layers || []).map((layer) => ({ ...layer, y: this.array(layer.y) }));
    this.lines = this.words.lines.map((line) => ({ ...line, y: this.array(line.y) }));
    this.stack();
  }

  isEmpty() { return this.words.x[1] === 0; }
  keys() { return [...this.layers, ...this.lines.map((line) => ({ ...line, line: true }))]; }
  signature() { return [this.lines.map((l) => [l.color, l.dashed]), this.words.x_label, this.words.cursor]; }
  isStack() { return this.words.kind === 'stacked'; }

  // Edges of each layer: what is positive piles up from zero, what is negative down.
  stack() {
    const up = new Float32Array(this.x.length);
    const down = new Float32Array(this.x.length);
    for (const layer of this.layers) {
      layer.from = new Float32Array(this.x.length);
      layer.to = new Float32Array(this.x.length);
      for (let i = 0; i < this.x.length; i++) {
        const v = Number.isFinite(layer.y[i]) ? layer.y[i] : 0;
        const pile = v > 0 ? up : down;
        layer.from[i] = pile[i];
        layer.to[i] = pile[i] += v;
      }
    }
    const parts = [up, down, ...this.lines.map((line) => line.y)];
    this.range = around((function* all() { for (const part of parts) yield* part; })(), this.isStack());
  }

  data() {
    const gaps = (y) => Array.from(y, (v) => (Number.isFinite(v) ? v : null));
    if (!this.isStack()) return [Array.from(this.x), ...this.lines.map((line) => gaps(line.y))];
    // A step lasts until the next one begins, and the last as long as the others.
    const last = this.x.length - 1;
    if (last < 0) return [[], ...this.lines.map(() => [])];
    return [[...this.x, this.words.end], ...this.lines.map((line) => gaps([...line.y, line.y[last]]))];
  }

  options(style) {
    const paths = this.isStack() ? uPlot.paths.stepped({ align: 1 }) : undefined;
    const ends = () => [this.x[0] || 0, Math.max(this.words.end, (this.x[0] || 0) + 1e-9)];
    return {
      cursor: {
        sync: { key: this.stage.key + this.words.x_label, scales: ['x', null] },
        drag: { x: false, y: false, setScale: false }, points: { show: false }, y: false,
      },
      scales: { x: { time: false, range: ends }, y: { range: () => this.range } },
      axes: [{ ...xAxis(style, this.words.x_label), incrs: WHOLE }, yAxis(style)],
      series: [{}, ...this.lines.map((line) => ({
        label: line.name, stroke: this.color(line.color), width: 1.5, paths, dash: line.dashed ? [5, 4] : undefined, points: { show: false },
      }))],
      hooks: { drawAxes: [(u) => this.paint(u)], draw: [() => this.placeCursor()] },
    };
  }

  paint(u) {
    if (!this.isStack()) return;
    const { ctx } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    // Whole pixels and plain rectangles: one path of them all takes 50 ms to fill instead of 2.
    const edges = Array.from(this.x, (x) => Math.round(u.valToPos(x, 'x', true)));
    edges.push(Math.round(u.valToPos(this.words.end, 'x', true)));
    ctx.globalAlpha = 0.72;
    for (const { color, from, to } of this.layers) {
      ctx.fillStyle = this.color(color);
      for (let i = 0; i < from.length; i++) {
        if (from[i] === to[i]) continue;
        const a = u.valToPos(from[i], 'y', true);
        const b = u.valToPos(to[i], 'y', true);
        ctx.fillRect(edges[i], Math.min(a, b), edges[i + 1] - edges[i], Math.abs(a - b));
      }
    }
    ctx.globalAlpha = 1;
    ctx.strokeStyle = this.ink('--rlnb-ink-soft');
    ctx.lineWidth = devicePixelRatio;
    const zero = Math.round(u.valToPos(0, 'y', true)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(u.bbox.left, zero);
    ctx.lineTo(u.bbox.left + u.bbox.width, zero);
    ctx.stroke();
    ctx.restore();
  }

  // The step that lasts at x: the last one that began.
  placeOf(x) {
    let low = 0;
    let high = this.x.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.x[middle] <= x) low = middle; else high = middle - 1;
    }
    return low;
  }

  pointed(event) {
    const { left, width } = this.plot.over.getBoundingClientRect();
    const x = this.plot.posToVal(Math.max(0, Math.min(width, event.clientX - left)), 'x');
    const place = this.placeOf(x);
    const next = this.x[place + 1];
    return !this.isStack() && next !== undefined && next - x < x - this.x[place] ? place + 1 : place;
  }

  hover(event) {
    if (!this.x.length) return;
    const place = this.pointed(event);
    const rows = this.keys().map(({ name, color, y }) => ({ color: this.color(color), name, value: reading(y[place]) }));
    this.stage.tip.show(`${this.words.x_label} ${compact(this.x[place])}`, rows, event.clientX, event.clientY);
    if (event.buttons === 1) this.press(event);
  }

  press(event) {
    if (this.words.cursor && this.x.length) this.stage.moveCursor(this.x[this.pointed(event)]);
  }

  placeCursor() {
    if (!this.plot) return;
    if (!this.mark || this.mark.parentNode !== this.plot.over) this.mark = make('div', 'rlnb-at', this.plot.over);
    const at = this.words.cursor ? this.stage.cursor() : null;
    this.mark.hidden = at === null || !this.x.length || at < this.x[0] || at > this.words.end;
    if (!this.mark.hidden) this.mark.style.left = `${this.plot.valToPos(at, 'x')}px`;
  }
}
