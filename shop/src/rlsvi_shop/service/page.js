"use strict";
// Asks /statistics every two seconds and shows what it says. All text goes in as text, never as HTML.
(() => {
  const EVERY = 2000, PATIENCE = 10000, ROWS = [25, 100, 1000], MOST_REFERENCES = 3;
  const $ = (id) => document.getElementById(id);
  const order = { by: "shown", descending: true, count: ROWS[0] };
  let shown = null, heard = null, timer = 0, asking = null;

  // ---- words and numbers ----------------------------------------------------------------------------------
  const EVEN = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
  const DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
  const ROUGH = new Intl.NumberFormat("en", { minimumSignificantDigits: 2, maximumSignificantDigits: 2 });
  const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const PLAIN = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
  const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  const absent = (it) => it === null || it === undefined;
  const minus = (words) => words.replace("-", "−");
  const number = (it) => (absent(it) ? "–" : minus((Math.abs(it) >= 1000 ? WHOLE : EVEN).format(it)));
  const rough = (it) => minus((Math.abs(it) >= 100 ? WHOLE : ROUGH).format(it));
  const tick = (it) => minus((Math.abs(it) >= 10000 ? SHORT : DIGITS).format(it));
  const whole = (it) => WHOLE.format(it);
  const many = (it, word) => `${whole(it)} ${word}${it === 1 ? "" : "s"}`;
  const percent = (it) => (absent(it) ? "–" : `${DIGITS.format(100 * it)}%`);
  const range = (low, high) => (absent(low) ? "–" : `${number(low)} to ${number(high)}`);
  const clock = (at) => new Date(1000 * at).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
  const day = (at) => new Date(1000 * at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  function span(seconds) {
    const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([it]) => seconds >= it) ?? [1, "s"];
    return `${Math.max(0, Math.floor(seconds / size))} ${unit}`;
  }
  const short = (it) => (String(it).length > 32 ? `${String(it).slice(0, 31)}…` : String(it));
  const list = (parts) => new Intl.ListFormat("en", { type: "conjunction" }).format(parts);

  // ---- elements -------------------------------------------------------------------------------------------
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  function say(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }
  // Puts new elements in the place of those that are not equal to them; the others stay, and what is selected in them.
  function replace(parent, elements) {
    elements.forEach((element, i) => {
      const old = parent.children[i];
      if (!old) parent.append(element);
      else if (!old.isEqualNode(element)) old.replaceWith(element);
    });
    while (parent.children.length > elements.length) parent.lastElementChild.remove();
  }

  // ---- charts ---------------------------------------------------------------------------------------------
  function ticks(low, high, count) {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 2.5, 5, 10].find((it) => it * power >= raw);
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  }

  function limits(values, margin) {
    const low = Math.min(...values), high = Math.max(...values);
    const room = high > low ? margin * (high - low) : Math.abs(high) / 10 || 1;
    return [low - room, high + room];
  }

  // points: {x, y, low, high, words}; lines: {name, value}; began: the visits before the shop served, 0 if none;
  // empty: what to say without points.
  function draw(figure, points, lines, format, [low, high], began, empty) {
    const picture = figure.querySelector("svg"), { width, height } = picture.getBoundingClientRect();
    const left = 44, right = width - 8, top = 8, bottom = height - 34;
    const end = points.length ? points.at(-1).x : 1;
    const x = (it) => left + ((right - left) * it) / end;
    const y = (it) => bottom - ((bottom - top) * (Math.min(Math.max(it, low), high) - low)) / (high - low);
    const path = (list, value) => list.map((it) => `${x(it.x).toFixed(1)} ${y(value(it)).toFixed(1)}`).join("L");
    const text = (words, where, kind = "number") => svg("text", { class: kind, ...where }, words);
    const parts = [];
    for (const it of ticks(low, high, 4))
      parts.push(svg("line", { class: "grid", x1: left, x2: right, y1: y(it), y2: y(it) }),
        text(format(it), { x: left - 8, y: y(it) + 4, "text-anchor": "end" }));
    for (const it of ticks(0, end, width < 400 ? 3 : 5).filter(Number.isInteger))
      parts.push(text(SHORT.format(it), { x: x(it), y: bottom + 16, "text-anchor": it ? "middle" : "start" }));
    parts.push(text("visits", { x: right, y: bottom + 31, "text-anchor": "end" }));
    const sides = [points.filter((it) => it.x <= began), points.filter((it) => it.x > began)];
    for (const banded of sides.map((side) => side.filter((it) => !absent(it.low))).filter((side) => side.length > 1))
      parts.push(svg("path", {
        class: "band",
        d: `M${path(banded, (it) => it.low)}L${path([...banded].reverse(), (it) => it.high)}Z`,
      }));
    for (const it of lines)
      parts.push(svg("line", { class: "reference", x1: left, x2: right, y1: y(it.value), y2: y(it.value) }));
    for (const side of sides.filter((it) => it.length > 1))
      parts.push(svg("path", { class: "curve", d: `M${path(side, (it) => it.y)}` }));
    if (began && began < end) {
      const words = x(began) > (left + right) / 2 ? { x: x(began) - 6, "text-anchor": "end" } : { x: x(began) + 6 };
      parts.push(svg("line", { class: "began", x1: x(began), x2: x(began), y1: top, y2: bottom }),
        text("serving began", { ...words, y: bottom - 6 }, "name"));
    }
    if (points.length) parts.push(svg("circle", { class: "dot", r: 4, cx: x(end), cy: y(points.at(-1).y) }));
    else parts.push(text(empty, { x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" }));
    const ends = points.length ? [points[0], points.at(-1)].map((it) => it.y) : [0, 1];
    for (const [i, it] of lines.entries()) {
      const below = lines.some((other, j) => j !== i && other.value >= it.value && y(it.value) - y(other.value) < 16);
      const [first, last] = ends.map((end) => Math.abs(end - it.value));
      const where = first > last ? { x: left + 6 } : { x: right - 6, "text-anchor": "end" };  // away from the curve
      parts.push(text(`${short(it.name)} ${number(it.value)}`, { ...where, y: y(it.value) + (below ? 14 : -5) }, "name"));
    }
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    replace(picture, parts);
    figure.point = (at) => at === null ? null
      : points.reduce((best, it) => (Math.abs(x(it.x) - at) < Math.abs(x(best.x) - at) ? it : best), points[0]);
    figure.place = (it) => [x(it.x), y(it.y), top, bottom];
    point(figure);
  }

  // The point nearest to the pointer, in words; without a pointer the last one.
  function point(figure) {
    for (const it of figure.querySelectorAll(".cursor")) it.remove();
    const it = figure.point?.(figure.pointer ?? null);
    if (it) {
      const [x, y, top, bottom] = figure.place(it);
      figure.querySelector("svg").append(svg("line", { class: "cursor", x1: x, x2: x, y1: top, y2: bottom }),
        svg("circle", { class: "cursor dot", r: 4, cx: x, cy: y }));
    }
    say(figure.querySelector("output"), it ? it.words : "");
  }

  function charts({ points, references, before, lately }) {
    const ended = points.filter((it) => !absent(it.mean)), began = before?.number ?? 0;
    const lines = before ? [...references, { name: "before serving", value: before.mean }] : references;
    const words = (it) => `After ${many(it.visits, "visit")}, ${clock(it.to)}: `;
    const rewards = ended.map((it) => ({
      x: it.visits, y: it.mean, low: it.low, high: it.high,
      words: `${words(it)}${number(it.mean)}${absent(it.low) ? "" : ` (${range(it.low, it.high)})`}`,
    }));
    // The band may be wide where few visits ended: the means and a little of it decide what is seen.
    const means = [...rewards.map((it) => it.y), ...lines.map((it) => it.value)];
    const usual = rewards.flatMap((it) => (absent(it.low) ? [] : [it.high - it.y])).sort((a, b) => a - b);
    const half = usual[Math.floor(usual.length / 2)] ?? 0;
    const seen = means.length ? means.flatMap((it, i) => (i < rewards.length ? [it - half, it + half] : [it])) : [0, 1];
    const none = "No visit has ended yet.";
    draw($("rewards"), rewards, lines, tick, limits(seen, 0.06), began, none);
    const shares = ended.filter((it) => !absent(it.explored))
      .map((it) => ({ x: it.visits, y: it.explored, words: `${words(it)}${percent(it.explored)}` }));
    const most = Math.min(1, 1.1 * Math.max(0.05, ...shares.map((it) => it.y)));
    const empty = !ended.length ? none : lately.served ? "There is no best guess yet." : "All visits were imported, not served.";
    draw($("exploration"), shares, [], percent, [0, most], began, empty);
    replace($("points").tBodies[0], ended.map((it) => html("tr", {},
      ...[whole(it.visits), clock(it.from), clock(it.to), number(it.mean), range(it.low, it.high), percent(it.explored)]
        .map((cell) => html("td", {}, cell)))));
  }

  // ---- four sentences for the owner -----------------------------------------------------------------------
  const between = (low, high) => `${rough(low)} to ${rough(high)}`;
  // How much more or less something is, {mean, low, high}, than what is named.
  function against({ mean, low, high }, what) {
    const words = `${rough(Math.abs(mean))} ${mean < 0 ? "less" : "more"} than ${what}`;
    if (absent(low)) return words;
    if (low <= 0 && high >= 0) return `about as much as ${what} (between ${rough(-low)} less and ${rough(high)} more)`;
    return `${words} (${mean < 0 ? between(-high, -low) : between(low, high)})`;
  }

  const imported = ({ number: visits }) =>
    visits === 1 ? "The only visit so far was imported, not served" : `All ${whole(visits)} visits so far were imported, not served`;

  function earned({ lately, before, references }) {
    if (!lately.number && before) return lately.served
      ? `No visit has ended since serving began; before, a visit earned ${number(before.mean)}.`
      : `${imported(before)}; a visit earned ${number(before.mean)}.`;
    if (!lately.number) return "No visit has ended yet.";
    const gains = before && lately.gain ? [against(lately.gain, "before serving began")] : [];
    for (const { name, value } of references.slice(0, MOST_REFERENCES)) {
      const [low, high] = [lately.low, lately.high].map((end) => (absent(end) ? null : end - value));
      gains.push(against({ mean: lately.mean - value, low, high }, `“${short(name)}”`));
    }
    const one = lately.number === 1, sure = absent(lately.low) ? "" : ` (95% sure: ${range(lately.low, lately.high)})`;
    const early = !absent(lately.low) ? "" : one ? " It is too early to tell how sure this is."
      : " All of them earned the same, so it is too early to tell how sure this is.";
    return `The ${one ? "only visit" : many(lately.number, "visit")} since ${day(lately.from)} earned ${number(lately.mean)}`
      + `${one ? "" : " each"}${sure}${gains.length ? `, ${list(gains)}` : ""}.${early}`;
  }

  function exploration({ explored, served, chosen, cost }, before) {
    if (absent(explored)) return served ? "Nothing is known yet, so products are shown at random."
      : before ? "No product has been shown since the import." : "Nothing has been shown yet.";
    const all = chosen < served ? `For ${whole(chosen)} of the ${many(served, "product")} shown lately there was a best guess; of these, `
      : `Of ${many(chosen, "product")} shown lately, `;
    if (!explored) return `${all}none was shown to learn.`;
    const share = `${all}${percent(explored)} were not the best guess but shown to learn`;
    if (!cost) return `${share}; too little is known to tell what that costs.`;
    const { mean, low, high } = cost;
    if (low <= 0 && high >= 0) return `${share}; what that costs is too little to tell, at most ${rough(high)} per visit.`;
    return `${share}, which ${mean < 0 ? "earned" : "cost"} about ${rough(Math.abs(mean))} per visit `
      + `(${mean < 0 ? between(-high, -low) : between(low, high)}).`;
  }

  function trend({ compared, rising, falling }) {
    if (!compared) return "No product has been shown often enough yet to tell.";
    const part = ({ count, rows }, how) => {
      const named = rows.map((it) => `${short(it.product)} (${number(it.before)} → ${number(it.now)})`);
      if (count > rows.length) named.push(many(count - rows.length, "other"));
      return count ? [`${list(named)} ${count === 1 ? "earns" : "earn"} ${how}`] : [];
    };
    const parts = [...part(rising, "more"), ...part(falling, "less")];
    const none = compared === 1 ? "The one product that can be compared does not earn"
      : `None of the ${whole(compared)} products that can be compared earns`;
    return parts.length ? `${parts.join("; ")} per showing than in the period before.`
      : `${none} clearly more or less per showing than in the period before.`;
  }

  function learning({ state, worked, failure, behind, age }) {
    const known = absent(age) ? "it has learned nothing that products could be chosen with yet"
      : `what it learned last is ${span(age)} old and ${behind ? "does not cover the latest answers yet" : "covers everything so far"}`;
    if (state === "ok") return `The learner worked ${span(worked)} ago; ${known}.`;
    if (state === "behind") return `The learner works, but visits come faster than it learns from them; ${known}.`;
    if (state === "failing") return `The learner fails (${failure}), and its log says why; ${known}.`;
    return `${absent(worked) ? "The learner has not worked yet" : `The learner has not worked for ${span(worked)}`}; ${known}.`;
  }

  // A fifth one, only if it is needed.
  function unanswered(missing) {
    return missing ? `${whole(missing.number)} of ${many(missing.of, "product")} shown lately have no answer, and the shop learns `
      + "nothing from them: send a reward of 0 for them, or set reward.unanswered." : "";
  }

  // ---- tiles, products, visits ----------------------------------------------------------------------------
  function tiles(all) {
    const { lately, before, trends, learner, visits, recommended } = all;
    say($("reward"), number(lately.mean));
    say($("reward-of"), earned(all));
    say($("explored"), percent(lately.explored));
    say($("explored-of"), exploration(lately, before));
    say($("trends"), trends.compared ? `${whole(trends.rising.count)} rise, ${whole(trends.falling.count)} fall` : "–");
    say($("trends-of"), trend(trends));
    say($("learner"), { ok: "alive", behind: "too slow", late: "stopped", failing: "failing" }[learner.state]);
    $("learner").className = learner.state === "ok" ? "good" : "bad";
    say($("learner-of"), learning(learner));
    say($("missing"), unanswered(lately.missing));
    $("missing").hidden = !lately.missing;
    say($("visits"), `${many(visits, "visit")} ended${before ? `, ${whole(before.number)} of them imported` : ""}; ${many(recommended, "product")} shown, also in visits that go on`);
  }

  function interval(it, low, high) {
    if (absent(it.value)) return html("td", {}, "–");
    const x = (value) => `${4 + (92 * (Math.min(Math.max(value, low), high) - low)) / (high - low || 1)}%`;
    const picture = svg("svg", { "aria-hidden": "true" },
      svg("line", { class: "interval", x1: x(it.low), x2: x(it.high), y1: 8, y2: 8 }),
      svg("circle", { class: "expected", r: 4, cx: x(it.value), cy: 8 }));
    const words = `${number(it.value)} (if only the product itself were in doubt: ${range(it.low, it.high)})`;
    return html("td", { title: words }, html("span", { class: "value", "aria-hidden": "true" }, number(it.value)), picture,
      html("span", { class: "offscreen" }, words));
  }

  function products({ count, offered, rows, low, high }, unanswered) {
    say($("products-of"), `${whole(offered)} offered${count > offered ? `, ${whole(count - offered)} removed` : ""}. `
      + `Earned: per showing, the mean of all answers to the product${absent(unanswered) ? ""
        : `, and ${minus(PLAIN.format(unanswered))} for each that was missing when its visit was closed`}. `
      + "Value if shown first: what the shop expects a whole visit to earn that begins with the product, for the average "
      + "customer. The longer the line, the less is known about the product. How the rest of the visit goes is in doubt "
      + "as well, and the line does not show that.");
    replace(document.querySelector("#products tbody"), rows.map((it) => html("tr", it.offered ? {} : { class: "removed" },
      html("td", { title: it.product }, String(it.product)), html("td", {}, whole(it.shown)),
      html("td", {}, number(it.mean)), interval(it, low, high), html("td", {}, it.offered ? "offered" : "removed"))));
    $("more").hidden = rows.length >= count || order.count >= ROWS.at(-1);
    for (const it of document.querySelectorAll("#products th")) {
      if (it.dataset.by === order.by) it.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
      else it.removeAttribute("aria-sort");
    }
  }

  function visit(it, now, bar) {
    const context = Object.entries(it.context ?? {}).map(([name, value]) => `${name} ${value}`).join(" · ");
    const chips = it.shown.map((one) => {
      const kind = absent(one.reward) ? "waiting" : one.reward > bar ? "liked" : "";
      const answer = absent(one.reward) ? "no answer" : `reward ${minus(PLAIN.format(one.reward))}`;
      const words = `${one.product}: ${answer}${one.explored ? ", shown to learn" : ""}`;
      return html("span", { class: `chip ${kind} ${one.explored ? "explored" : ""}`, title: words }, String(one.product),
        html("span", { class: "offscreen" }, `: ${answer}${one.explored ? ", shown to learn" : ""};`));
    });
    const state = `${it.ended ? `reward ${minus(PLAIN.format(it.reward))}` : "goes on"} · ${span(now - it.at)} ago`;
    return html("li", {},
      html("div", { class: "visit" }, html("b", { title: it.visit }, String(it.visit)), html("span", {}, state)),
      ...(context ? [html("div", { class: "context" }, context)] : []), html("div", {}, ...chips));
  }

  // ---- the server -----------------------------------------------------------------------------------------
  function state(kind, words) {
    $("state").className = kind;
    say($("state"), words);
  }

  function show() {
    if (!shown) return;
    charts(shown);
    tiles(shown);
    products(shown.products, shown.unanswered);
    replace(document.querySelector("#latest ol"), shown.latest.map((it) => visit(it, shown.now, shown.liked_above)));
  }

  async function ask() {
    clearTimeout(timer);
    asking?.abort();
    const mine = (asking = new AbortController());
    const patience = setTimeout(() => mine.abort(), PATIENCE);
    let wait = EVERY;
    try {
      const token = sessionStorage.getItem("token");
      const headers = token ? { Authorization: `Bearer ${token}` } : {};
      const answer = await fetch(`statistics?${new URLSearchParams(order)}`, { headers, cache: "no-store", signal: mine.signal });
      if (answer.status === 401) return login(token);
      if (!answer.ok) throw new Error((await answer.json()).error ?? answer.statusText);
      shown = await answer.json();
      heard = new Date();
      $("ask").hidden = true;
      $("shop").hidden = false;
      if (shown.read < shown.events) {
        state("live", `Counting what happened so far: ${percent(shown.read / shown.events)}`);
        wait = 100;
      } else state("live", "Live");
      show();
    } catch (error) {
      if (mine !== asking) return; // a newer question is on its way
      const why = error instanceof TypeError || error.name === "AbortError" ? "The server does not answer" : error.message;
      state("lost", `${why}${heard ? `; this is how it was at ${heard.toLocaleTimeString()}` : ""}. Trying again.`);
    } finally {
      clearTimeout(patience);
    }
    if (mine === asking && !document.hidden) timer = setTimeout(ask, wait);
  }

  function login(token) {
    sessionStorage.removeItem("token");
    state("", "A token is needed.");
    say($("refused"), token ? "The server does not accept this token." : "");
    $("shop").hidden = true;
    $("ask").hidden = false;
    $("token").value = "";
    $("token").focus();
  }

  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", $("token").value);
    ask();
  });
  for (const heading of document.querySelectorAll("#products th"))
    heading.querySelector("button").addEventListener("click", () => {
      const { by } = heading.dataset;
      order.descending = order.by === by ? !order.descending : by !== "product";
      order.by = by;
      ask();
    });
  $("more").addEventListener("click", () => {
    order.count = ROWS[ROWS.indexOf(order.count) + 1];
    ask();
  });
  for (const figure of document.querySelectorAll("figure")) {
    const move = (at) => { figure.pointer = at; point(figure); };
    figure.addEventListener("pointermove", (event) => move(event.clientX - figure.querySelector("svg").getBoundingClientRect().left));
    figure.addEventListener("pointerleave", () => move(null));
  }
  addEventListener("resize", show);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  ask();
})();
