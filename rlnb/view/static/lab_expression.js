// A field for an expression (rlnb/view/lab/expression_field.py): offers names, marks the place of an error.

const WAIT = 150; // ms after the last key until Python gets the text
const MOST = 60; // names in the list

class ExpressionView {
  constructor(model, el) {
    this.model = model;
    this.id = Math.random().toString(36).slice(2);
    this.count = 0;
    this.root = make('div', 'rlnb-lab rlnb-expression', el);
    const box = make('div', 'rlnb-expression-box', this.root);
    this.under = make('div', 'rlnb-expression-under', box);
    this.under.setAttribute('aria-hidden', 'true');
    this.input = make('input', 'rlnb-expression-input', box);
    this.state = make('span', 'rlnb-expression-state', box);
    this.error = make('div', 'rlnb-expression-error', this.root);
    this.error.id = `rlnb-error-${this.id}`;
    this.error.setAttribute('role', 'status');
    for (const [name, value] of Object.entries({
      type: 'text', spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', role: 'combobox',
      'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': `rlnb-names-${this.id}`,
      'aria-describedby': this.error.id,
    })) this.input.setAttribute(name, value);
    // In the page's body, since the output of a cell cuts what hangs out of it.
    this.list = make('div', 'rlnb-lab rlnb-names', document.body);
    this.list.id = `rlnb-names-${this.id}`;
    this.list.setAttribute('role', 'listbox');
    this.list.hidden = true;

    this.input.addEventListener('input', () => this.typed());
    this.input.addEventListener('keydown', (event) => this.key(event));
    this.input.addEventListener('blur', () => { this.close(); this.send(); });
    this.input.addEventListener('click', () => this.close());
    this.input.addEventListener('scroll', () => { this.under.scrollLeft = this.input.scrollLeft; });
    // The list stands still on the page while the notebook moves below it.
    this.away = (event) => { if (!this.list.hidden && !this.list.contains(event.target)) this.place(); };
    document.addEventListener('scroll', this.away, true);
    window.addEventListener('resize', this.away);
    this.heard = [
      ['change:value change:edit', () => this.take()],
      ['change:checked change:error change:error_position change:error_length', () => this.judge()],
      ['change:placeholder change:label change:disabled', () => this.dress()],
    ];
    this.heard.forEach(([event, handle]) => model.on(event, handle));
    this.input.value = model.get('value');
    this.sent = this.input.value;
    this.dress();
    this.judge();
  }

  dress() {
    this.input.placeholder = this.model.get('placeholder');
    this.input.setAttribute('aria-label', this.model.get('label'));
    this.input.disabled = this.model.get('disabled');
  }

  // --- the text on its way to Python and back

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), WAIT);
    this.offer();
    this.judge();
  }

  send() {
    clearTimeout(this.timer);
    if (this.input.value === this.sent) return;
    this.sent = this.input.value;
    this.last = `${this.id}:${++this.count}`;
    this.model.send({ text: this.sent, edit: this.last });
  }

  // A text from Python counts if nothing was typed that Python has not seen yet.
  take() {
    const [value, edit] = [this.model.get('value'), this.model.get('edit')];
    const unsent = this.input.value !== this.sent;
    const stale = edit.startsWith(`${this.id}:`) ? edit !== this.last : this.last && this.awaits(edit);
    if (!unsent && !stale && value !== this.input.value) {
      const caret = this.input.selectionStart;
      this.input.value = this.sent = value;
      if (document.activeElement === this.input) this.input.setSelectionRange(caret, caret);
    }
    if (edit === this.last) this.answered = this.last;
    this.judge();
  }

  // Python set the text before it had our last one.
  awaits(edit) { return this.answered !== this.last && edit !== this.last; }

  // --- what Python thinks of it

  judge() {
    const text = this.input.value;
    const known = this.model.get('checked') === text;
    const error = known ? this.model.get('error') : '';
    const state = error ? 'error' : known ? (text ? 'ok' : 'empty') : this.model.get('checked') === null && text === this.sent ? '' : 'pending';
    this.root.dataset.state = state;
    this.state.textContent = { ok: '✓', pending: '…', error: '!' }[state] || '';
    this.state.title = { ok: 'works', pending: 'being checked', error: 'has an error' }[state] || '';
    this.input.setAttribute('aria-invalid', error ? 'true' : 'false');
    if (known || !text) {
      // A sentence that is about to be replaced stays while somebody types: rows would jump otherwise.
      this.error.textContent = error;
      this.error.hidden = !error;
    }
    this.under.replaceChildren();
    const at = this.model.get('error_position');
    if (!error || at === null) return;
    make('span', '', this.under, text.slice(0, at));
    // At the end of the text there is no character to mark; a space stands in.
    make('span', 'rlnb-fault', this.under, text.slice(at, at + this.model.get('error_length')) || ' ');
    this.under.scrollLeft = this.input.scrollLeft;
  }

  // --- names

  // The word before the caret: letters, digits, dots and an opened subscript such as info["co.
  word() {
    const before = this.input.value.slice(0, this.input.selectionStart);
    const found = /[A-Za-z_][\w.]*(\["?[\w. ]*)?$/.exec(before);
    return found && !/[\d.]$/.test(before.slice(0, found.index)) ? found[0] : '';
  }

  offer() {
    const word = this.word();
    const low = word.toLowerCase();
    const ranked = [[], []];
    if (word) {
      for (const [name, about] of this.model.get('names')) {
        const place = name.toLowerCase().indexOf(low);
        if (place >= 0 && name !== word) ranked[place ? 1 : 0].push([name, about]);
      }
    }
    this.found = ranked.flat().slice(0, MOST);
    if (!this.found.length) { this.close(); return; }
    this.list.replaceChildren();
    this.found.forEach(([name, about], i) => {
      const row = make('div', 'rlnb-names-row', this.list);
      row.id = `${this.list.id}-${i}`;
      row.setAttribute('role', 'option');
      const text = make('code', '', row);
      const place = name.toLowerCase().indexOf(low);
      text.append(name.slice(0, place), make('b', '', null, name.slice(place, place + word.length)), name.slice(place + word.length));
      make('span', 'rlnb-muted', row, about);
      // Not click: the field would lose the focus first.
      row.addEventListener('pointerdown', (event) => { event.preventDefault(); this.insert(i); });
    });
    this.list.hidden = false;
    this.input.setAttribute('aria-expanded', 'true');
    this.place();
    this.pick(0);
  }

  // Below the word, or above it when there is no room.
  place() {
    const field = this.input.getBoundingClientRect();
    const style = getComputedStyle(this.input);
    const ctx = document.createElement('canvas').getContext('2d');
    ctx.font = `${style.fontSize} ${style.fontFamily}`;
    const before = this.input.value.slice(0, this.input.selectionStart - this.word().length);
    const x = field.left + parseFloat(style.paddingLeft) + ctx.measureText(before).width - this.input.scrollLeft;
    const { offsetWidth: width, offsetHeight: height } = this.list;
    const below = field.bottom + 2;
    const top = below + height > innerHeight && field.top - 2 - height > 0 ? field.top - 2 - height : below;
    this.list.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 8))}px`;
    this.list.style.top = `${top}px`;
  }

  pick(i) {
    this.picked = i;
    [...this.list.children].forEach((row, k) => row.setAttribute('aria-selected', k === i ? 'true' : 'false'));
    const row = this.list.children[i];
    this.input.setAttribute('aria-activedescendant', row.id);
    // Not scrollIntoView, which would scroll the notebook, too.
    if (row.offsetTop < this.list.scrollTop) this.list.scrollTop = row.offsetTop;
    const over = row.offsetTop + row.offsetHeight - this.list.scrollTop - this.list.clientHeight;
    if (over > 0) this.list.scrollTop += over;
  }

  insert(i) {
    const caret = this.input.selectionStart;
    const [name] = this.found[i];
    let after = this.input.value.slice(caret);
    if (name.endsWith('(') && after.startsWith('(')) after = after.slice(1);
    const start = this.input.value.slice(0, caret - this.word().length) + name;
    this.input.value = start + after;
    this.input.setSelectionRange(start.length, start.length);
    this.typed();
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute('aria-expanded', 'false');
    this.input.removeAttribute('aria-activedescendant');
  }

  key(event) {
    if (event.isComposing) return;
    const open = !this.list.hidden;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    if (open && plain) {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) this.pick((this.picked + by + this.found.length) % this.found.length);
      else if (event.key === 'Enter' || event.key === 'Tab') this.insert(this.picked);
      else if (event.key === 'Escape') this.close();
      else return;
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.key === 'Enter' && plain) this.send();
    if (event.key === ' ' && event.ctrlKey) { event.preventDefault(); this.offer(); }
    if (event.key === 'Escape') this.input.blur();
  }

  destroy() {
    clearTimeout(this.timer);
    this.heard.forEach(([event, handle]) => this.model.off(event, handle));
    document.removeEventListener('scroll', this.away, true);
    window.removeEventListener('resize', this.away);
    this.list.remove();
  }
}

function render({ model, el }) {
  const view = new ExpressionView(model, el);
  return () => view.destroy();
}

export default { render };
