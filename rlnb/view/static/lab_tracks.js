// What stands below the picture: the table of reward terms at the cursor, and each component as a small line.

class TermTable {
  constructor(parent, paint) {
    this.paint = paint;
    this.root = make('table', 'rlnb-terms', parent);
    make('caption', '', this.root, 'Reward at the cursor');
    const head = make('tr', '', make('thead', '', this.root));
    ['term', 'value', 'weighted', 'sum so far'].forEach((text) => { make('th', '', head, text).scope = 'col'; });
    this.body = make('tbody', '', this.root);
  }

  update(words, rows) {
    this.rows = rows;
    this.body.replaceChildren();
    this.cells = [...words.terms, ...words.totals].map(({ name, color }, i) => {
      const tr = make('tr', i >= words.terms.length ? 'rlnb-total' : '', this.body);
      const th = make('th', '', tr);
      th.scope = 'row';
      make('span', 'rlnb-square', th).style.background = color === undefined ? 'transparent' : this.paint(color);
      make('span', '', th, name);
      return [make('td', '', tr), make('td', '', tr), make('td', '', tr)];
    });
  }

  at(place) {
    this.cells.forEach((cells, i) => this.rows[i].forEach((row, k) => {
      cells[k].textContent = row ? reading(row[place]) : '';
    }));
  }
}

const SPARK = 30; // pixels

// Components one below the other on one x axis, that of the steps; only the cursor moves over them.
class Tracks {
  constructor(parent, moveTo) {
    this.root = make('div', 'rlnb-tracks', parent);
    this.title = make('div', 'rlnb-tracks-title', this.root);
    this.list = make('div', 'rlnb-tracks-list', this.root);
    const move = (event) => {
      if (event.buttons !== 1 || !event.target.closest('.rlnb-spark')) return;
      const box = event.target.closest('.rlnb-spark').getBoundingClientRect();
      moveTo(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)));
    };
    this.list.addEventListener('pointerdown', move);
    this.list.addEventListener('pointermove', move);
  }

  update(words, rows) {
    this.title.textContent = words.components.length ? 'Observation before the step' : 'no observation components to show';
    this.rows = rows;
    const names = JSON.stringify(words.components);
    if (this.names !== names) {
      this.names = names;
      this.list.replaceChildren();
      this.items = words.components.map(({ name, unit }) => {
        const item = make('div', 'rlnb-track', this.list);
        const label = make('div', 'rlnb-track-name', item, name);
        label.title = unit ? `${name} (${unit})` : name;
        if (unit) make('span', 'rlnb-muted', label, ` ${unit}`);
        const spark = make('div', 'rlnb-spark', item);
        spark.setAttribute('role', 'img');
        return { name, spark, canvas: make('canvas', '', spark), at: make('div', 'rlnb-at', spark), value: make('div', 'rlnb-value', item) };
      });
    }
    this.draw();
  }

  draw() {
    this.items.forEach((item, i) => this.line(item, this.rows[i]));
  }

  // Every column of pixels shows the smallest and the largest value that falls into it.
  line({ name, spark, canvas }, values) {
    const width = Math.max(20, Math.round(spark.clientWidth * devicePixelRatio));
    const height = SPARK * devicePixelRatio;
    canvas.width = width;
    canvas.height = height;
    const ctx = canvas.getContext('2d');
    let [low, high] = [Infinity, -Infinity];
    for (const v of values) if (Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    spark.setAttribute('aria-label', low <= high ? `${name} from ${reading(low)} to ${reading(high)}` : `${name}: no values`);
    spark.title = low <= high ? `${reading(low)} to ${reading(high)}` : 'no values';
    if (low > high) return;
    const y = (v) => (high > low ? 3 + (height - 6) * (1 - (v - low) / (high - low)) : height / 2);
    if (low < 0 && high > 0) {
      ctx.strokeStyle = cssVar(spark, '--rlnb-grid', '#ddd');
      ctx.beginPath();
      ctx.moveTo(0, y(0));
      ctx.lineTo(width, y(0));
      ctx.stroke();
    }
    ctx.strokeStyle = cssVar(spark, '--rlnb-c0', '#1d63d8');
    ctx.lineWidth = 1.4 * devicePixelRatio;
    ctx.lineJoin = 'round';
    ctx.beginPath();
    const count = values.length;
    const per = count / width;
    const x = (i) => ((i + 0.5) / count) * width;
    let pen = false;
    const to = (i, v) => { if (pen) ctx.lineTo(x(i), y(v)); else ctx.moveTo(x(i), y(v)); pen = true; };
    if (per <= 2) {
      values.forEach((v, i) => { if (Number.isFinite(v)) to(i, v); else pen = false; });
      if (count === 1) ctx.lineTo(x(0) + 2, y(values[0]));
    } else {
      for (let column = 0; column < width; column++) {
        const [from, end] = [Math.floor(column * per), Math.floor((column + 1) * per)];
        let [least, most] = [Infinity, -Infinity];
        for (let i = from; i < end; i++) if (Number.isFinite(values[i])) { least = Math.min(least, values[i]); most = Math.max(most, values[i]); }
        if (least > most) { pen = false; continue; }
        to(from, least);
        to(from, most);
      }
    }
    ctx.stroke();
  }

  at(place, count) {
    const left = `${(100 * (place + 0.5)) / Math.max(1, count)}%`;
    this.items.forEach(({ at, value }, i) => {
      at.style.left = left;
      value.textContent = reading(this.rows[i][place]);
    });
  }
}
