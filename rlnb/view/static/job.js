// The live view of a run (anywidget): heading, buttons, and a grid of charts (chart.js).
// Python decides what is shown and in which words; this file only draws it.

class JobView {
  constructor(model, el) {
    this.model = model;
    this.height = 148;
    this.key = 'rlnb-' + Math.random().toString(36).slice(2);
    this.charts = new Map();
    this.root = make('div', 'rlnb-job', el);
    this.root.setAttribute('role', 'region');

    const bar = make('div', 'rlnb-bar', this.root);
    const name = make('div', 'rlnb-name', bar);
    this.state = make('span', 'rlnb-state', name);
    this.title = make('strong', 'rlnb-title', name);
    this.what = make('span', 'rlnb-muted', name);
    this.buttons = make('div', 'rlnb-buttons', bar);
    this.buttons.setAttribute('role', 'group');
    this.buttons.setAttribute('aria-label', 'Control the run');

    this.progress = make('div', 'rlnb-progress', this.root);
    this.progress.setAttribute('role', 'progressbar');
    this.progress.setAttribute('aria-valuemin', '0');
    this.progress.setAttribute('aria-valuemax', '100');
    this.progress.setAttribute('aria-label', 'Training progress');
    this.done = make('div', 'rlnb-done', this.progress);
    const words = make('div', 'rlnb-words', this.root);
    this.steps = make('span', '', words);
    this.details = make('span', 'rlnb-muted', words);
    const said = make('div', 'rlnb-said', this.root);
    this.why = make('div', 'rlnb-why', said);
    this.answer = make('div', 'rlnb-answer', said);
    this.answer.setAttribute('role', 'status');
    this.grid = make('div', 'rlnb-grid', this.root);
    this.foot = make('div', 'rlnb-foot rlnb-muted', this.root);

    this.pending = false;
    this.onModel = () => {
      this.root.classList.remove('rlnb-adrift');
      this.ask();
    };
    model.on('change:seq', this.onModel);
    // The connection was lost or came back, and only an answer can tell which.
    this.onConnection = () => {
      this.root.classList.add('rlnb-adrift');
      try {
        model.send({ verb: 'refresh' });
      } catch {
        // no kernel, no answer: the note stays
      }
    };
    model.on('comm_live_update', this.onConnection);
    // The first size comes once the view is in the page; before that neither width nor theme are known.
    this.sizes = new ResizeObserver(() => {
      if (this.drawn) this.charts.forEach((chart) => chart.fit());
      else if (this.root.clientWidth) this.draw();
    });
    this.sizes.observe(this.root);
    this.leaveTheme = onTheme(() => {
      if (!this.gone) this.charts.forEach((chart) => chart.rebuild());
    });
    this.drawn = false;
    this.head(model.get('head'));
  }

  marks() { return this.model.get('marks'); }
  lastStep() { return this.model.get('marks').last_step; }
  isFirst(chart) { return this.model.get('panels')[0].key === chart.panel.key; }

  // One drawing a frame, however many updates arrive; none while the page is hidden.
  ask() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; if (!this.gone) this.draw(); });
  }

  draw() {
    this.head(this.model.get('head'));
    if (!this.root.clientWidth) return; // hidden; drawn when it gets a size
    this.drawn = true;
    const panels = this.model.get('panels');
    const keys = panels.map((p) => p.key);
    this.root.classList.toggle('rlnb-single', panels.length === 1);
    this.height = panels.length === 1 ? 280 : 148;
    for (const [key, chart] of this.charts) {
      if (!keys.includes(key)) { chart.destroy(); this.charts.delete(key); }
    }
    panels.forEach((panel, place) => {
      let chart = this.charts.get(panel.key);
      if (!chart) {
        chart = new Chart(this, null);
        this.charts.set(panel.key, chart);
      }
      if (this.grid.children[place] !== chart.root) {
        this.grid.insertBefore(chart.root, this.grid.children[place] || null);
      }
      chart.update(panel, unpack(this.model.get('data_' + panel.key), panel.lines.length));
    });
    const { attempts, checkpoints } = this.marks();
    const notes = [];
    if (checkpoints.length) notes.push('▲ checkpoint');
    if (attempts.length) notes.push('┆ a new attempt took up the run');
    this.foot.textContent = notes.join('   ');
  }

  head(head) {
    this.root.setAttribute('aria-label', `Run ${head.title}: ${head.state}`);
    this.root.dataset.state = head.value;
    this.root.dataset.tone = head.tone;
    this.state.textContent = head.state;
    this.title.textContent = head.title;
    this.what.textContent = head.what;
    const percent = head.fraction === null ? null : 100 * head.fraction;
    this.progress.hidden = percent === null;
    if (percent !== null) {
      this.done.style.width = percent.toFixed(2) + '%';
      this.progress.setAttribute('aria-valuenow', percent.toFixed(0));
      this.progress.setAttribute('aria-valuetext', head.progress);
    }
    this.steps.textContent = [head.progress, head.left].filter(Boolean).join(' · ');
    this.details.textContent = head.details.join(' · ');
    this.why.textContent = head.why;
    this.why.hidden = !head.why;
    if (this.answer.textContent !== head.answer) this.answer.textContent = head.answer;
    this.answer.hidden = !head.answer;
    this.control(head.buttons);
    // At the end Python puts an image in this view's place; JupyterLab cannot do so in a page that was reloaded.
    if (head.ended && !this.hint) {
      this.hint = setTimeout(() => {
        this.foot.textContent += '   Run this cell again to keep the picture as an image in the notebook.';
      }, 4000);
    }
  }

  control(buttons) {
    const names = buttons.map((b) => b.verb).join();
    if (this.buttons.dataset.names !== names) {
      this.buttons.dataset.names = names;
      this.buttons.replaceChildren();
      for (const { verb, label, describe } of buttons) {
        const button = make('button', 'rlnb-button', this.buttons, label);
        button.type = 'button';
        button.dataset.verb = verb;
        button.title = describe;
        button.setAttribute('aria-label', `${label}: ${describe}`);
        button.addEventListener('click', () => {
          button.disabled = true;
          this.model.send({ verb });
        });
      }
    }
    buttons.forEach(({ enabled }, i) => { this.buttons.children[i].disabled = !enabled; });
  }

  destroy() {
    this.gone = true; // a drawing may still be asked for
    clearTimeout(this.hint);
    this.model.off('change:seq', this.onModel);
    this.model.off('comm_live_update', this.onConnection);
    this.sizes.disconnect();
    this.leaveTheme();
    this.charts.forEach((chart) => chart.destroy());
  }
}

function render({ model, el }) {
  const view = new JobView(model, el);
  return () => view.destroy();
}

export default { render };
