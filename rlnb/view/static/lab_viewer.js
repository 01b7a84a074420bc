// One episode, step by step (rlnb/view/lab/viewer.py): picture, reward and observation at one cursor.

const ICONS = {
  first: ['first step', 'M3 3h2v10H3zM13 3v10L6 8z'],
  back: ['one step back', 'M11 3v10L4 8z'],
  play: ['play', 'M4 3l9 5-9 5z'],
  pause: ['pause', 'M4 3h3v10H4zM9 3h3v10H9z'],
  forward: ['one step forward', 'M5 3v10l7-5z'],
  last: ['last step', 'M11 3h2v10h-2zM3 3v10l7-5z'],
};
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];

function icon(button, name) {
  const [title, path] = ICONS[name];
  button.innerHTML = `<svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true"><path fill="currentColor" d="${path}"/></svg>`;
  button.title = title;
  button.setAttribute('aria-label', title);
}

class ViewerView extends Stage {
  constructor(model, el) {
    super(model, el, 'rlnb-viewer');
    this.height = 190;
    this.place = 0;
    this.forward = true;
    const head = make('div', 'rlnb-viewer-head', this.root);
    this.title = make('strong', 'rlnb-viewer-title', head);
    this.length = make('span', 'rlnb-muted', head);
    this.ending = make('span', 'rlnb-ending', head);
    this.stride = make('span', 'rlnb-muted', head);
    const top = make('div', 'rlnb-viewer-top', this.root);
    this.picture = make('div', 'rlnb-picture', top);
    this.image = make('img', '', this.picture);
    this.image.draggable = false;
    this.said = make('div', 'rlnb-muted rlnb-picture-said', this.picture);
    this.frameStep = make('div', 'rlnb-picture-step', this.picture);
    this.chartBox = make('div', 'rlnb-viewer-chart', top);
    this.controls(make('div', 'rlnb-controls', this.root));
    const bottom = make('div', 'rlnb-viewer-bottom', this.root);
    this.frames = new Frames(model, () => this.showFrame());
    this.reward = new SeriesChart(this);
    this.chartBox.appendChild(this.reward.root);
    this.charts.set('reward', this.reward);
    this.table = new TermTable(make('div', 'rlnb-terms-box', bottom), (color) => (
      typeof color === 'number' ? `var(--rlnb-c${color % 8})` : color === 'ink' ? 'var(--rlnb-ink)' : color));
    this.tracks = new Tracks(bottom, (share) => this.go(Math.min(this.count - 1, Math.floor(share * this.count))));
    // The small lines are drawn anew with the chart, whatever the reason: size or theme.
    this.charts.set('tracks', {
      fit: () => { if (this.rows) this.tracks.draw(); }, rebuild: () => { if (this.rows) this.tracks.draw(); }, destroy() {},
    });
    this.listen('change:seq', () => this.ask());
    this.listen('change:cursor', () => { if (this.rows && !this.playing) this.go(this.placeOf(model.get('cursor')), false); });
  }

  controls(bar) {
    bar.setAttribute('role', 'group');
    bar.setAttribute('aria-label', 'Go through the episode');
    bar.dataset.lmSuppressShortcuts = 'true';
    const button = (name, act) => {
      const made = make('button', 'rlnb-button rlnb-icon', bar);
      made.type = 'button';
      icon(made, name);
      made.addEventListener('click', act);
      return made;
    };
    button('first', () => this.go(0));
    button('back', () => this.go(this.place - 1));
    this.playButton = button('play', () => this.toggle());
    button('forward', () => this.go(this.place + 1));
    button('last', () => this.go(this.count - 1));
    this.range = make('input', 'rlnb-range', bar);
    this.range.type = 'range';
    this.range.min = 0;
    this.range.setAttribute('aria-label', 'step');
    this.range.addEventListener('input', () => { this.stop(); this.go(+this.range.value); });
    this.now = make('span', 'rlnb-now', bar);
    const speed = make('label', 'rlnb-speed rlnb-muted', bar, 'speed ');
    this.speed = make('select', '', speed);
    SPEEDS.forEach((times) => { make('option', '', this.speed, `${times}×`).value = times; });
    this.speed.value = 1;
    bar.addEventListener('keydown', (event) => {
      if (event.target === this.speed || event.ctrlKey || event.metaKey || event.altKey) return;
      const by = event.shiftKey ? 10 : 1;
      const act = {
        ArrowLeft: () => this.go(this.place - by), ArrowRight: () => this.go(this.place + by),
        Home: () => this.go(0), End: () => this.go(this.count - 1),
        // A button that has the focus is pressed by the space bar itself.
        ' ': event.target.tagName === 'BUTTON' ? null : () => this.toggle(),
      }[event.key];
      if (!act) return;
      event.preventDefault();
      event.stopPropagation();
      act();
    });
  }

  draw() {
    const words = this.model.get('words');
    if (words.key === undefined) return;
    const all = numbersOf(this.model.get('data'), Float64Array);
    this.count = words.count;
    const rows = [];
    for (let i = 0; i * this.count < all.length; i++) rows.push(all.subarray(i * this.count, (i + 1) * this.count));
    this.rows = rows;
    this.steps = rows[0] || new Float64Array(0);
    if (this.shown !== words.key) this.stop();
    this.shown = words.key;
    this.title.textContent = words.title;
    this.length.textContent = words.length;
    this.ending.textContent = words.ending;
    this.ending.hidden = !words.ending;
    this.stride.textContent = words.stride;
    this.range.max = Math.max(0, this.count - 1);
    const terms = words.terms.map((_, i) => rows.slice(1 + 3 * i, 4 + 3 * i));
    const after = 1 + 3 * words.terms.length;
    const totals = words.totals.map((_, i) => [null, rows[after + 2 * i], rows[after + 2 * i + 1]]);
    this.table.update(words, [...terms, ...totals]);
    this.tracks.update(words, rows.slice(after + 2 * words.totals.length));
    this.frames.use(words.key, words.frame_steps);
    this.root.classList.toggle('rlnb-blank', !words.frame_steps.length);
    this.reward.update(this.model.get('figure'), numbersOf(this.model.get('figure_data'), Float32Array));
    this.place = -1;
    this.go(this.placeOf(this.model.get('cursor')), false);
  }

  placeOf(step) {
    let place = 0;
    for (let i = 0; i < this.steps.length && this.steps[i] <= step; i++) place = i;
    return place;
  }

  cursor() { return this.steps && this.place >= 0 && this.count ? this.steps[this.place] : null; }
  moveCursor(step) { this.stop(); this.go(this.placeOf(step)); }

  // Moves the cursor; everything that depends on it follows at once.
  go(place, tell = true) {
    if (!this.rows || !this.count) { this.showFrame(); return; }
    place = Math.max(0, Math.min(this.count - 1, place));
    if (place === this.place) return;
    this.forward = place >= this.place;
    this.place = place;
    this.range.value = place;
    const step = this.steps[place];
    this.range.setAttribute('aria-valuetext', `step ${step}`);
    this.now.textContent = `step ${step.toLocaleString('en')} / ${this.steps[this.count - 1].toLocaleString('en')}`;
    this.ending.classList.toggle('rlnb-here', place === this.count - 1);
    this.table.at(place);
    this.tracks.at(place, this.count);
    this.reward.placeCursor();
    this.showFrame();
    // While it plays, Python hears of it a few times a second.
    if (tell && (!this.playing || performance.now() - (this.told || 0) > 250)) this.tell();
  }

  tell() {
    this.told = performance.now();
    this.model.set('cursor', this.cursor());
    this.model.save_changes();
  }

  showFrame() {
    if (!this.frames.steps) return;
    const frame = this.count ? this.frames.at(this.cursor(), this.forward) : null;
    this.said.textContent = frame ? frame.failed || (frame.url || this.image.src ? '' : 'loading…') : this.model.get('words').no_frames;
    this.image.hidden = !frame || Boolean(frame.failed) || !(frame.url || this.image.src);
    this.frameStep.textContent = frame && frame.step !== this.cursor() ? `picture of step ${frame.step}` : '';
    if (!frame || !frame.url) return;
    if (this.image.src !== frame.url) this.image.src = frame.url;
    this.image.alt = `step ${frame.step}`;
  }

  toggle() {
    if (this.playing) { this.stop(); return; }
    if (!this.count) return;
    if (this.place === this.count - 1) this.go(0);
    icon(this.playButton, 'pause');
    let before = performance.now();
    let owed = 0;
    const next = (now) => {
      if (this.gone) return;
      owed += ((now - before) / 1000) * this.model.get('words').rate * +this.speed.value;
      before = now;
      if (owed >= 1) { this.go(this.place + Math.floor(owed)); owed %= 1; }
      if (this.place === this.count - 1) this.stop(); else this.playing = requestAnimationFrame(next);
    };
    this.playing = requestAnimationFrame(next);
  }

  stop() {
    if (!this.playing) return;
    cancelAnimationFrame(this.playing);
    this.playing = null;
    icon(this.playButton, 'play');
    this.tell();
  }

  destroy() {
    cancelAnimationFrame(this.playing);
    this.frames.destroy();
    super.destroy();
  }
}

function render({ model, el }) {
  const view = new ViewerView(model, el);
  return () => view.destroy();
}

export default { render };
