// What all views draw with: elements, theme colours, numbers from Python, readings. Python puts this file and
// those that use it into one module, behind uPlot (MIT, see uPlot.LICENSE.txt).

function cssVar(el, name, fallback) {
  return getComputedStyle(el).getPropertyValue(name).trim() || fallback;
}

function make(tag, className, parent, text) {
  const el = document.createElement(tag);
  if (className) el.className = className;
  if (text !== undefined) el.textContent = text;
  if (parent) parent.appendChild(el);
  return el;
}

// Python's bytes arrive as a DataView at any offset, of which typed arrays take multiples of their size only.
function numbersOf(view, Type) {
  if (!view || !view.byteLength) return new Type(0);
  return new Type(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

// x as float64, then one float64 row for each line.
function unpack(view, lines) {
  const all = numbersOf(view, Float64Array);
  if (!all.length) return [[]].concat(Array.from({ length: lines }, () => []));
  const n = all.length / (lines + 1);
  const out = [all.subarray(0, n)];
  for (let i = 1; i <= lines; i++) {
    // uPlot knows gaps as null only.
    out.push(Array.from(all.subarray(i * n, (i + 1) * n), (v) => (Number.isFinite(v) ? v : null)));
  }
  return out;
}

function compact(v) {
  const a = Math.abs(v);
  if (a >= 1e9) return +(v / 1e9).toPrecision(3) + 'G';
  if (a >= 1e6) return +(v / 1e6).toPrecision(3) + 'M';
  if (a >= 1e4) return +(v / 1e3).toPrecision(3) + 'k';
  if (a >= 1000) return v.toLocaleString('en', { maximumFractionDigits: 0 });
  if (a === 0) return '0';
  if (a < 1e-4) return v.toExponential(1);
  return String(+v.toPrecision(4));
}

// The ticks of one axis in one unit: 5k beside 10k, not 5,000.
function ticks(values) {
  const most = Math.max(...values.map(Math.abs));
  return values.map((v) => (most >= 1e4 && most < 1e6 ? +(v / 1e3).toPrecision(4) + (v ? 'k' : '') : compact(v)));
}

function reading(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return '–';
  return compact(v).replace('-', '−');
}

// Ink, grid and font of an axis in the current theme.
function axisStyle(root) {
  const grid = cssVar(root, '--rlnb-grid', '#e4e4e4');
  const font = `11px ${cssVar(root, '--rlnb-font', 'sans-serif')}`;
  return {
    stroke: cssVar(root, '--rlnb-ink-soft', '#555'), font, labelFont: font,
    grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, gap: 4,
  };
}

// Calls back once a theme has taken effect; returns what ends it.
function onTheme(changed) {
  const themes = new MutationObserver(() => requestAnimationFrame(changed));
  themes.observe(document.body, {
    attributes: true, attributeFilter: ['data-jp-theme-light', 'data-jp-theme-name', 'class'],
  });
  return () => themes.disconnect();
}
