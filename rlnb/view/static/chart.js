// One chart of the live view, on uPlot.

const X_LABEL = 'environment steps';

class Chart {
  constructor(view, parent) {
    this.view = view;
    this.root = make('section', 'rlnb-chart', parent);
    const head = make('header', 'rlnb-chart-head', this.root);
    const title = make('div', 'rlnb-chart-title', head);
    this.title = make('strong', '', title);
    this.unit = make('span', 'rlnb-muted', title);
    this.legend = make('div', 'rlnb-legend', head);
    this.box = make('div', 'rlnb-plot', this.root);
    this.box.setAttribute('role', 'img');
    this.empty = make('div', 'rlnb-empty', this.box, 'no values yet');
    this.plot = null;
    this.signature = '';
  }

  update(panel, data) {
    const changed = this.panel !== panel;
    this.panel = panel;
    this.data = data;
    if (changed) this.describe();
    this.empty.style.display = data[0].length ? 'none' : '';
    const signature = panel.lines.map((l) => l.label + l.style).join('|');
    if (!this.plot || signature !== this.signature) {
      this.signature = signature;
      this.rebuild();
    } else {
      this.plot.setData(data);
    }
  }

  describe() {
    const p = this.panel;
    this.title.textContent = p.title;
    this.unit.textContent = p.unit;
    this.root.title = p.note;
    this.legend.replaceChildren();
    const solid = p.lines.map((l, i) => [l, i]).filter(([l]) => l.style === 'line');
    this.values = p.lines.map((line) => {
      if (line.style !== 'line') return null;
      const item = make('span', 'rlnb-legend-item', this.legend);
      if (solid.length > 1) { // a single line needs no key, only its value
        make('span', 'rlnb-swatch', item).style.background = `var(--rlnb-c${line.color % 8})`;
        make('span', '', item, line.label);
      }
      return make('span', 'rlnb-value', item);
    });
    if (p.note) make('span', 'rlnb-muted rlnb-note', this.legend, p.note);
    this.read(null);
    const said = solid.map(([l, i]) => `${l.label} ${reading(p.last[i])}`).join(', ');
    this.box.setAttribute('aria-label', `${p.title}${p.unit && ` in ${p.unit}`} over ${X_LABEL}; newest: ${said || 'nothing yet'}`);
  }

  // Writes the values under the cursor, or the newest ones, into the legend.
  read(index) {
    this.values.forEach((el, i) => {
      if (el) el.textContent = reading(index === null ? this.panel.last[i] : this.data[i + 1][index]);
    });
  }

  rebuild() {
    if (this.plot) this.plot.destroy();
    const { view, panel } = this;
    const axis = axisStyle(view.root);
    const few = (u) => u.data[0].length < 3;
    const bands = [];
    panel.lines.forEach((line, i) => {
      if (line.style === 'upper') {
        bands.push({ series: [i + 1, i + 2], fill: this.color(line) + '2e' });
      }
    });
    this.plot = new uPlot({
      width: this.width(), height: view.height, legend: { show: false }, padding: [8, 15, 0, 0],
      cursor: {
        sync: { key: view.key, scales: ['x', null] }, drag: { x: false, y: false, setScale: false },
        points: { size: 6 }, y: false,
      },
      scales: { x: { time: false, range: () => [0, Math.max(1, view.lastStep())] } },
      axes: [
        { ...axis, size: 22, label: X_LABEL, labelSize: 15, labelGap: 0, space: 60, values: (u, vs) => ticks(vs) },
        { ...axis, size: 46, space: 24, values: (u, vs) => ticks(vs) },
      ],
      bands,
      series: [{}, ...panel.lines.map((line) => ({
        label: line.label, stroke: this.color(line), spanGaps: true,
        width: line.style === 'line' ? 1.75 : line.style === 'faint' ? 1 : 0,
        alpha: line.style === 'faint' ? 0.4 : 1,
        points: { show: few, size: 5, fill: this.color(line) },
      }))],
      hooks: {
        drawClear: [(u) => this.marks(u)],
        setCursor: [(u) => this.read(u.cursor.idx === undefined || u.cursor.left < 0 ? null : u.cursor.idx)],
      },
    }, this.data, this.box);
  }

  color(line) {
    return cssVar(this.view.root, `--rlnb-c${line.color % 8}`, '#1d63d8');
  }

  // Checkpoints as small triangles on the step axis, attempts as dashed lines.
  marks(u) {
    const { attempts, checkpoints } = this.view.marks();
    const { left, top, width, height } = u.bbox;
    const ratio = devicePixelRatio;
    const ctx = u.ctx;
    ctx.save();
    ctx.fillStyle = ctx.strokeStyle = cssVar(this.view.root, '--rlnb-ink-soft', '#555');
    let previous = -Infinity;
    for (const step of checkpoints) {
      const x = u.valToPos(step, 'x', true);
      if (x < left || x > left + width + 1 || x - previous < 6 * ratio) continue;
      previous = x;
      ctx.beginPath();
      ctx.moveTo(x, top + height - 5 * ratio);
      ctx.lineTo(x - 3 * ratio, top + height);
      ctx.lineTo(x + 3 * ratio, top + height);
      ctx.fill();
    }
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    ctx.lineWidth = ratio;
    ctx.font = `${10 * ratio}px ${cssVar(this.view.root, '--rlnb-font', 'sans-serif')}`;
    ctx.textBaseline = 'top';
    for (const { step, label } of attempts) {
      const x = u.valToPos(step, 'x', true);
      if (x < left - 1 || x > left + width + 1) continue;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      if (this.view.isFirst(this)) {
        const space = ctx.measureText(label).width + 4 * ratio;
        const flip = x + space > left + width;
        ctx.textAlign = flip ? 'right' : 'left';
        ctx.fillText(label, x + (flip ? -3 : 3) * ratio, top + 1 * ratio);
      }
    }
    ctx.restore();
  }

  width() {
    return Math.max(120, Math.floor(this.box.clientWidth) || 280);
  }

  fit() {
    if (this.plot && Math.abs(this.plot.width - this.width()) > 1) {
      this.plot.setSize({ width: this.width(), height: this.view.height });
    }
  }

  destroy() {
    if (this.plot) this.plot.destroy();
    this.root.remove();
  }
}
