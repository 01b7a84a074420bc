// What all charts of the Lab have in common: frame, legend, tooltip, axes, and the stage they stand on.
// Numbers and words come from Python (rlnb/view/lab/packing.py).

// One tooltip for all charts of a stage; it stays inside the stage, since an output cuts what is outside.
class Tip {
  constructor(root) {
    this.root = root;
    this.el = make('div', 'rlnb-tip', root);
    this.el.hidden = true;
  }

  // rows: {color, name, value}; x and y are the pointer's place in the page.
  show(head, rows, x, y) {
    this.el.replaceChildren();
    make('div', 'rlnb-tip-head', this.el, head);
    for (const { color, name, value } of rows) {
      const row = make('div', 'rlnb-tip-row', this.el);
      make('span', 'rlnb-square', row).style.background = color || 'transparent';
      make('span', '', row, name);
      make('span', 'rlnb-value', row, value);
    }
    this.el.hidden = false;
    const stage = this.root.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.el;
    const right = x - stage.left + 14;
    const left = right + width > stage.width ? x - stage.left - 14 - width : right;
    const top = Math.min(y - stage.top + 10, stage.height - height);
    this.el.style.left = `${Math.max(0, left)}px`;
    this.el.style.top = `${Math.max(0, top)}px`;
  }

  hide() { this.el.hidden = true; }
}

// What charts stand on. Sub-classes give draw(), cursor(), moveCursor(x), select(key, index) and marks().
class Stage {
  constructor(model, el, className) {
    this.model = model;
    this.key = 'rlnb-' + Math.random().toString(36).slice(2);
    this.root = make('div', `rlnb-lab ${className}`, el);
    this.tip = new Tip(this.root);
    this.charts = new Map();
    this.heard = [];
    this.drawn = false;
    // In a hidden tab there is no width; the first one comes when the tab is shown.
    this.sizes = new ResizeObserver(() => {
      if (!this.root.clientWidth) return;
      if (this.drawn && !this.stale) this.charts.forEach((chart) => chart.fit());
      else this.ask();
    });
    this.sizes.observe(this.root);
    this.leaveTheme = onTheme(() => {
      if (!this.gone && this.root.clientWidth) this.charts.forEach((chart) => chart.rebuild());
      else this.stale = true;
    });
  }

  listen(event, handle) {
    this.model.on(event, handle);
    this.heard.push([event, handle]);
  }

  // One drawing a frame, however many updates arrive; none while the page is hidden.
  ask() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      if (this.gone) return;
      this.drawn = this.root.clientWidth > 0;
      if (!this.drawn) return;
      this.draw();
      if (this.stale) this.charts.forEach((chart) => chart.rebuild());
      this.stale = false;
    });
  }

  destroy() {
    this.gone = true; // a drawing may still be asked for
    this.heard.forEach(([event, handle]) => this.model.off(event, handle));
    this.sizes.disconnect();
    this.leaveTheme();
    this.charts.forEach((chart) => chart.destroy());
  }
}

// A chart on one uPlot. Sub-classes give keys(), signature(), options(), data() and isEmpty().
class FigureChart {
  constructor(stage) {
    this.stage = stage;
    this.root = make('section', 'rlnb-chart', null);
    this.head = make('header', 'rlnb-chart-head', this.root);
    const title = make('div', 'rlnb-chart-title', this.head);
    this.title = make('strong', '', title);
    this.unit = make('span', 'rlnb-muted', title);
    this.legend = make('div', 'rlnb-legend', this.head);
    this.box = make('div', 'rlnb-plot', this.root);
    this.box.setAttribute('role', 'img');
    this.empty = make('div', 'rlnb-empty', this.box);
    this.plot = null;
  }

  update(words, numbers) {
    this.words = words;
    this.numbers = numbers;
    this.root.dataset.key = words.key;
    this.root.classList.toggle('rlnb-wide', words.wide);
    write(this.title, words.title);
    write(this.unit, words.unit || '');
    this.box.setAttribute('aria-label', words.said);
    write(this.empty, words.empty);
    this.empty.hidden = !this.isEmpty();
    this.box.classList.toggle('rlnb-void', this.isEmpty());
    this.prepare();
    const signature = JSON.stringify([words.kind, words.note, this.keys().map((key) => [key.name, key.color]), this.signature()]);
    if (this.plot && this.signed === signature) {
      this.plot.setData(this.data());
    } else {
      this.signed = signature;
      this.rebuild();
    }
  }

  prepare() {}

  describe() {
    this.legend.replaceChildren();
    for (const { name, color, line, dashed } of this.keys()) {
      const item = make('span', 'rlnb-legend-item', this.legend);
      const swatch = make('span', line ? 'rlnb-swatch' : 'rlnb-square', item);
      const shown = this.color(color);
      swatch.style.background = dashed ? `repeating-linear-gradient(90deg, ${shown} 0 5px, transparent 5px 8px)` : shown;
      make('span', '', item, name);
    }
    if (this.words.note) make('span', 'rlnb-muted rlnb-note', this.legend, this.words.note);
  }

  array([start, length]) { return this.numbers.subarray(start, start + length); }

  color(color) {
    if (color === 'ink') return this.ink('--rlnb-ink');
    if (typeof color === 'string' && color.startsWith('var(')) return this.ink(color.slice(4, -1)); // a canvas knows no variables
    return typeof color === 'number' ? cssVar(this.stage.root, `--rlnb-c${color % 8}`, '#1d63d8') : color;
  }

  ink(name) { return cssVar(this.stage.root, name, '#777'); }

  rebuild() {
    if (!this.words) return;
    if (this.plot) this.plot.destroy();
    this.describe(); // swatches follow the theme, too
    const options = this.options(axisStyle(this.stage.root));
    this.plot = new uPlot({
      width: this.width(), height: this.height(), legend: { show: false }, padding: [8, 20, 0, 0], ...options,
    }, this.data(), this.box);
    this.plot.over.addEventListener('pointermove', (event) => this.hover(event));
    this.plot.over.addEventListener('pointerleave', () => this.leave());
    this.plot.over.addEventListener('pointerdown', (event) => this.press(event));
  }

  height() { return this.stage.height; }
  width() { return Math.max(120, Math.floor(this.box.clientWidth) || 280); }
  hover() {}
  press() {}
  leave() { this.stage.tip.hide(); }
  placeCursor() {}

  fit() {
    if (this.plot && Math.abs(this.plot.width - this.width()) > 1) {
      this.plot.setSize({ width: this.width(), height: this.height() });
    }
  }

  destroy() {
    if (this.plot) this.plot.destroy();
    this.root.remove();
  }
}

// Text that is as it was costs the page no layout.
function write(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

// Lets an element have the focus and its keys, which JupyterLab would take for commands to the notebook.
function takesKeys(el) {
  el.tabIndex = 0;
  el.dataset.lmSuppressShortcuts = 'true';
}

// Axes as the charts of a run have them.
function xAxis(style, label) {
  return { ...style, size: 22, label, labelSize: 15, labelGap: 0, space: 60, values: (u, vs) => ticks(vs) };
}

function yAxis(style, label) {
  const named = label ? { label, labelSize: 16, labelGap: 0 } : {};
  return { ...style, size: 46, space: 24, values: (u, vs) => ticks(vs), ...named };
}

// Room around the smallest and largest value; never an empty range.
function around(values, includeZero) {
  let low = includeZero ? 0 : Infinity;
  let high = includeZero ? 0 : -Infinity;
  for (const v of values) {
    if (!Number.isFinite(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  if (low > high) return [0, 1];
  const room = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
  return [includeZero && low === 0 ? 0 : low - room, includeZero && high === 0 ? 0 : high + room];
}
