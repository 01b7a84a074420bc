// Pictures of an episode: asked for ahead of the cursor, kept while they are likely to be seen again.

const AHEAD = 16; // pictures that are asked for before they are needed
const KEPT = 600;

class Frames {
  constructor(model, changed) {
    this.model = model;
    this.changed = changed;
    this.urls = new Map(); // step → address of its picture, in the order of use
    this.failed = new Map();
    this.asked = new Set();
    this.key = null;
    this.receive = (content, buffers) => this.take(content, buffers);
    model.on('msg:custom', this.receive);
  }

  // Another episode has other pictures.
  use(key, steps) {
    this.steps = steps;
    if (key === this.key) return;
    this.key = key;
    this.clear();
  }

  // Place in `steps` of the picture that was last taken at or before a step.
  placeOf(step) {
    let place = -1;
    let high = this.steps.length - 1;
    let low = 0;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (this.steps[middle] <= step) { place = middle; low = middle + 1; } else high = middle - 1;
    }
    return Math.max(0, place);
  }

  // {step, url, failed}: what is to be shown at a step, as far as it is here; asks for the rest.
  at(step, forward) {
    if (!this.steps.length) return null;
    const place = this.placeOf(step);
    const found = this.steps[place];
    const want = [];
    for (let i = 0; i <= AHEAD; i++) {
      const next = this.steps[place + (forward ? i : -i)];
      if (next !== undefined && !this.urls.has(next) && !this.failed.has(next) && !this.asked.has(next)) want.push(next);
    }
    // Few at a time, so that the one under the cursor comes first; not one message for each.
    if (want.length && (want[0] === found || want.length > AHEAD / 2)) {
      want.forEach((one) => this.asked.add(one));
      this.model.send({ want: want.slice(0, 1), episode: this.key });
      if (want.length > 1) this.model.send({ want: want.slice(1), episode: this.key });
    }
    const url = this.urls.get(found);
    if (url) { this.urls.delete(found); this.urls.set(found, url); }
    return { step: found, url, failed: this.failed.get(found) };
  }

  take(content, buffers) {
    if (!content || !content.frames || content.episode !== this.key) return;
    content.frames.forEach((step, i) => {
      this.asked.delete(step);
      if (!this.urls.has(step)) this.urls.set(step, URL.createObjectURL(new Blob([buffers[i]])));
    });
    for (const [step, why] of Object.entries(content.failed)) {
      this.asked.delete(+step);
      this.failed.set(+step, why);
    }
    for (const [step, url] of this.urls) {
      if (this.urls.size <= KEPT) break;
      URL.revokeObjectURL(url);
      this.urls.delete(step);
    }
    this.changed();
  }

  clear() {
    this.urls.forEach((url) => URL.revokeObjectURL(url));
    [this.urls, this.failed, this.asked].forEach((kept) => kept.clear());
  }

  destroy() {
    this.model.off('msg:custom', this.receive);
    this.clear();
  }
}
