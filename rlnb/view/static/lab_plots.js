// A grid of charts (rlnb/view/lab/plots.py).

const CHARTS = {
  stacked: SeriesChart, lines: SeriesChart, bars: BarsChart, heat: HeatChart, strips: StripsChart, points: PointsChart,
};

class PlotsView extends Stage {
  constructor(model, el) {
    super(model, el, 'rlnb-plots');
    this.grid = make('div', 'rlnb-figures', this.root);
    this.seen = new Map();
    this.listen('change:seq', () => this.ask());
    this.listen('change:columns', () => this.ask());
    this.listen('change:height', () => { this.seen.clear(); this.charts.forEach((c) => { c.signed = ''; }); this.ask(); });
    this.listen('change:cursor', () => this.charts.forEach((chart) => chart.placeCursor()));
    this.listen('change:marks', () => this.charts.forEach((chart) => { if (chart.ring) chart.ring(); }));
  }

  get height() { return this.model.get('height'); }
  cursor() { return this.model.get('cursor'); }
  marks() { return this.model.get('marks'); }
  select(key, index) { this.model.send({ select: key, index }); }

  moveCursor(x) {
    if (x === this.cursor()) return;
    this.model.set('cursor', x);
    this.model.save_changes();
  }

  draw() {
    this.grid.style.setProperty('--rlnb-columns', this.model.get('columns'));
    const [figures, data] = [this.model.get('figures'), this.model.get('data')];
    const keys = figures.map((words) => words.key);
    for (const [key, chart] of this.charts) {
      if (!keys.includes(key)) { chart.destroy(); this.charts.delete(key); this.seen.delete(key); }
    }
    figures.forEach((words, place) => {
      let chart = this.charts.get(words.key);
      if (chart && chart.kind !== words.kind) { chart.destroy(); chart = null; }
      if (!chart) {
        chart = new CHARTS[words.kind](this);
        chart.kind = words.kind;
        this.charts.set(words.key, chart);
        this.seen.delete(words.key);
      }
      if (this.grid.children[place] !== chart.root) this.grid.insertBefore(chart.root, this.grid.children[place] || null);
      if (this.seen.get(words.key) === words.change) return; // as it was
      this.seen.set(words.key, words.change);
      chart.update(words, numbersOf(data[words.key], Float32Array));
    });
    if (this.model.get('measure')) {
      const answer = { drawn: this.model.get('seq'), stamp: this.model.get('stamp') };
      setTimeout(() => { // after the frame has been painted
        if (!this.gone) this.model.send({ ...answer, at: (performance.timeOrigin + performance.now()) / 1000 });
      });
    }
  }
}

function render({ model, el }) {
  const view = new PlotsView(model, el);
  return () => view.destroy();
}

export default { render };
