// The episodes of a lab as a table (rlnb/view/lab/episode_list.py); Python sorts them and says which is chosen.

class ListView {
  constructor(model, el) {
    this.model = model;
    this.root = make('div', 'rlnb-lab rlnb-list', el);
    this.root.tabIndex = 0;
    this.root.dataset.lmSuppressShortcuts = 'true';
    this.root.setAttribute('aria-label', 'episodes; arrow keys go through them');
    const table = make('table', 'rlnb-list-table', this.root);
    this.head = make('tr', '', make('thead', '', table));
    this.body = make('tbody', '', table);
    this.listeners = [
      ['change:rows', () => this.draw()], ['change:selected', () => this.mark(true)],
      ['change:sort change:descending', () => this.heads()],
    ];
    this.listeners.forEach(([event, act]) => model.on(event, act));
    this.body.addEventListener('click', (event) => {
      const row = event.target.closest('tr[data-place]');
      if (row) this.choose(+row.dataset.place);
    });
    this.root.addEventListener('keydown', (event) => this.key(event));
    this.heads();
    this.draw();
    // It has no height to scroll in before it is in the page.
    requestAnimationFrame(() => this.mark(true));
  }

  heads() {
    const [sort, descending] = [this.model.get('sort'), this.model.get('descending')];
    this.head.replaceChildren();
    this.model.get('columns').forEach(({ key, text, tip }) => {
      const th = make('th', '', this.head);
      th.scope = 'col';
      const here = key === sort;
      if (here) th.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      const button = make('button', '', th, text + (here ? (descending ? ' ▾' : ' ▴') : ''));
      button.type = 'button';
      button.title = tip;
      button.addEventListener('click', () => this.model.send({ sort: key }));
    });
  }

  draw() {
    const paint = (color) => (typeof color === 'number' ? `var(--rlnb-c${color % 8})` : color === 'ink' ? 'var(--rlnb-ink)' : color);
    const rows = this.model.get('rows');
    const columns = this.model.get('columns').length;
    const top = this.root.scrollTop;
    this.lines = new Map();
    const all = [];
    rows.forEach(({ place, cells, color, group }) => {
      if (group) {
        const line = make('tr', 'rlnb-list-group');
        const th = make('th', '', line);
        th.colSpan = columns;
        th.scope = 'rowgroup';
        make('span', 'rlnb-list-square', th).style.background = paint(color);
        make('span', '', th, group);
        all.push(line);
      }
      const line = make('tr', '');
      line.dataset.place = place;
      cells.forEach((text, i) => {
        const td = make('td', '', line);
        if (!i) make('span', 'rlnb-list-square', td).style.background = paint(color);
        make('span', '', td, text);
      });
      this.lines.set(place, line);
      all.push(line);
    });
    if (!rows.length) make('td', 'rlnb-muted', make('tr', ''), 'no episodes of this policy').colSpan = columns;
    this.body.replaceChildren(...all);
    this.root.scrollTop = top;
    this.mark(false);
  }

  mark(scroll) {
    const chosen = this.model.get('selected');
    this.lines.forEach((line, place) => { line.setAttribute('aria-selected', place === chosen); });
    const line = this.lines.get(chosen);
    if (!scroll || !line) return;
    // Not scrollIntoView, which would move the notebook as well.
    const head = this.head.offsetHeight;
    if (line.offsetTop < this.root.scrollTop + head) this.root.scrollTop = line.offsetTop - head;
    const below = line.offsetTop + line.offsetHeight - this.root.clientHeight;
    if (below > this.root.scrollTop) this.root.scrollTop = below;
  }

  choose(place) { this.model.send({ select: place }); }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === 'BUTTON') return;
    const places = [...this.lines.keys()];
    const at = places.indexOf(this.model.get('selected'));
    const to = { ArrowUp: Math.max(0, at - 1), ArrowDown: at + 1, Home: 0, End: places.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (to !== at && to < places.length) this.choose(places[to]);
  }

  destroy() {
    this.listeners.forEach(([event, act]) => this.model.off(event, act));
  }
}

function render({ model, el }) {
  const view = new ListView(model, el);
  return () => view.destroy();
}

export default { render };
