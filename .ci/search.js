// Search by words, in the place of Fuse, which searches by letters. Both builders of the docs call it in the same way.
(() => {
  "use strict";
  const SMALL = new Set("a an and as by do for from how i in is it my not of on or the to what with you your".split(" "));
  const words = (text) => {  // year_min is a word, and so are its parts
    const whole = (text || "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
    return whole.flatMap((word) => word.includes("_") ? [word, ...word.split("_").filter(Boolean)] : [word]);
  };
  const stem = (word) => word.length > 4 ? word.replace(/(ations|ation|ings|ing|ers|er|ed|es|s)$/, "") || word : word;
  // How well one word of the query fits a list of words: 1 the word itself, less for another form, or for its beginning
  const fit = (word, list) => {
    let best = 0;
    for (const other of list) {
      if (other === word || other === word + "s") return 1;
      if (stem(other) === stem(word)) best = Math.max(best, .8);
      else if (other.startsWith(word)) best = Math.max(best, .5 * word.length / other.length + .2);
    }
    return best;
  };
  const score = (entry, query) => {
    let total = 0, fits = 0;
    for (const word of query) {
      const title = 8 * fit(word, entry.title) / Math.sqrt(Math.max(1, entry.title.length - 2));
      const section = 6 * fit(word, entry.section) / Math.sqrt(Math.max(1, entry.section.length - 2));
      const text = (entry.counts.get(word) || 0) || (entry.stems.get(stem(word)) || 0) / 2;
      const found = Math.max(title * (entry.section.length ? .6 : 1), section) + Math.min(2, Math.log2(1 + text) / 2);
      total += found;
      fits += found > 0;
    }
    return total * entry.weight * (fits / query.length) ** 2;
  };
  const count = (list) => list.reduce((map, word) => map.set(word, (map.get(word) || 0) + 1), new Map());
  window.Fuse = class {
    constructor(list) { this.entries = []; (list || []).forEach((item) => this.add(item)); }
    add(item) {
      const text = words(item.text);
      const head = (heading) => words(heading).filter((word) => !SMALL.has(word));
      this.entries.push({ item, title: head(item.title), section: head(item.section), counts: count(text),
        stems: count(text.map(stem)), weight: item.weight || 1 });
    }
    search(query, options) {
      const typed = (query || "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [], pages = new Map();
      const large = typed.filter((word) => !SMALL.has(word)), asked = large.length ? large : typed;
      return this.entries.map((entry) => ({ item: entry.item, score: score(entry, asked) }))
        .filter((hit) => hit.score > 0).sort((a, b) => b.score - a.score)
        .filter((hit) => {  // three places of a page at most
          const page = hit.item.href.split("#")[0];
          pages.set(page, (pages.get(page) || 0) + 1);
          return pages.get(page) <= 3;
        }).slice(0, (options && options.limit) || 20);
    }
  };
})();
