"use strict";
// Filters and search, which the address may ask for as #verdict=not+reproduced&section=Section+6.1&kind=proof&search=…
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const filters = document.getElementById("filters");
  const fields = all("input, select", filters);
  const claims = all(".claim");
  const folds = all(".fold"); // figures, which a phone shows folded
  const phone = matchMedia("(max-width: 44rem)").matches;
  const links = all('.gallery a, .headlines a, nav a[href^="#figure-"]');

  const has = (element, words) => words.every((word) => element.textContent.toLowerCase().includes(word));

  function show() {
    const [search, ...choices] = fields;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = choices.filter((choice) => choice.value);
    const filtering = words.length > 0 || chosen.length > 0;
    for (const section of all("section.figure")) {
      const named = has(section.querySelector("h2"), words);
      for (const claim of all(".claim", section))
        claim.hidden = !(named || has(claim, words)) || chosen.some((it) => claim.dataset[it.name] !== it.value);
      section.hidden = filtering && !section.querySelector(".claim:not([hidden])");
    }
    for (const fold of folds) fold.open = !phone || filtering;
    for (const link of links)
      link.closest("li").hidden = document.getElementById(link.hash.slice(1)).matches("[hidden], [hidden] *");
    const shown = claims.filter((claim) => !claim.hidden).length;
    filters.querySelector("output").textContent = `${shown} of ${claims.length} claims`;
    filters.querySelector("button").hidden = !filtering;
  }

  function choose(values) {
    for (const field of fields) {
      field.value = values.get(field.name) ?? "";
      if (field.selectedIndex === -1) field.value = "";
    }
    show();
  }

  function follow() {
    const fragment = location.hash.slice(1);
    if (fragment.includes("=")) return choose(new URLSearchParams(fragment));
    const target = document.getElementById(fragment);
    if (!target) return;
    if (target.matches("[hidden], [hidden] *")) choose(new URLSearchParams());
    const fold = target.closest(".figure")?.querySelector(".fold");
    if (fold) fold.open = true;
    if (target.matches(".claim")) target.open = true;
    target.scrollIntoView();
  }

  function changed() {
    const given = fields.filter((field) => field.value).map((field) => [field.name, field.value]);
    history.replaceState(null, "", `#${new URLSearchParams(given)}`);
    show();
    const first = document.querySelector("section.figure:not([hidden])");
    if (first && scrollY > document.getElementById("headlines").offsetTop) first.scrollIntoView();
  }

  filters.addEventListener("input", changed);
  filters.querySelector("button").addEventListener("click", () => (choose(new URLSearchParams()), changed()));
  addEventListener("hashchange", follow);
  addEventListener("click", (event) => {
    if (event.target.closest("nav a")) document.getElementById("menu").checked = false;
    const same = event.target.closest('a[href^="#"]');
    if (same && same.hash === location.hash) follow();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const zoomed of all(".zoom[open]")) zoomed.open = false;
  });
  filters.hidden = document.querySelector("nav label span").hidden = false;
  show();
  follow();
})();
