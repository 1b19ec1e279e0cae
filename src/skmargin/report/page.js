"use strict";
(() => {
  // All text reaches the page through textContent: names of classes, features and models are never markup.
  const data = JSON.parse(document.getElementById("data").textContent);
  const { dataset, models, baseline } = data;
  const METRICS = { accuracy: "accuracy", "balanced-accuracy": "balanced accuracy", "macro-f1": "macro-F1" };
  const metric = METRICS[data.metric] || data.metric || "accuracy", capital = (t) => t.charAt(0).toUpperCase() + t.slice(1);
  const main = document.getElementById("main");
  const state = { model: 0, shown: new Set([0]), classes: new Set(), kind: "cumulative", parts: new Set(["test", "train"]), samples: "hardest" };
  const mean = (a) => a.reduce((s, v) => s + v, 0) / a.length;
  const deviation = (a) => (a.length < 2 || a.includes(null) ? null : Math.sqrt(a.reduce((s, v) => s + (v - mean(a)) ** 2, 0) / (a.length - 1)));
  // A fold that failed has no score, and its model neither mean nor deviation.
  const scores = (m) => (m.fold_scores.length ? m.fold_scores : [m.test_score]).filter((v) => v != null);
  const score = (m) => (!m.fold_scores.length ? m.test_score : m.fold_scores.includes(null) ? null : mean(m.fold_scores));
  const percent = (v, digits = 1) => (v == null ? "–" : (100 * v).toFixed(digits) + " %");
  const rank = (m) => 1 + models.filter((other) => score(other) > score(m) + 1e-12).length;
  const whole = (n) => n.toLocaleString("en-US");
  const number = (v) => {
    if (v == null) return "–";
    if (typeof v !== "number") return String(v);
    const a = Math.abs(v);
    return a !== 0 && (a < 1e-3 || a >= 1e5) ? v.toExponential(2) : Number(v.toPrecision(4)).toString();
  };
  const seconds = (v) => (v == null ? "–" : v < 1e-3 ? (v * 1e6).toFixed(0) + " µs" : v < 1 ? (v * 1e3).toPrecision(3) + " ms" : v.toPrecision(3) + " s");
  // eight colours, then the same ones darker (on a dark page lighter), then paler
  const colour = (i) => (i < 8 ? `var(--c${i})` : `color-mix(in oklab, var(--c${i % 8}) 50%, var(--${i % 16 < 8 ? "card" : "ink"}))`);

  function h(tag, attributes, ...children) {
    const svg = ["svg", "path", "line", "circle", "text", "g", "rect"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value == null || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "style") for (const [property, v] of Object.entries(value)) node.style.setProperty(property, v);
      else node.setAttribute(key, value);
    }
    for (const child of children.flat()) if (child != null) node.append(child);
    return node;
  }
  const name = (text) => h("bdi", {}, String(text));
  const dot = (i) => h("span", { class: "dot", style: { background: colour(i) }, "aria-hidden": "true" });
  const fill = (node, ...children) => node.replaceChildren(...children.flat().filter((c) => c != null));
  function card(id, title, lead, ...children) {
    const node = h("section", { class: "card", id, "aria-labelledby": id + "-title" }, h("h2", { id: id + "-title" }, title), lead ? h("p", { class: "lead" }, lead) : null, ...children);
    main.append(node);
    return node;
  }
  const region = (label, ...children) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children);
  function chip(label, pressed, action) {
    return h("button", { type: "button", class: "chip", "aria-pressed": String(pressed), onclick: action }, label);
  }
  const group = (title, ...chips) => h("div", { class: "group", role: "group", "aria-label": title }, h("span", { class: "name", "aria-hidden": "true" }, title), ...chips);

  // ---- facts and verdict -------------------------------------------------------------------------------------------
  const facts = [["Data", name(dataset.name)], [whole(dataset.n_samples), "samples"], [whole(dataset.n_features), "features"], [dataset.classes.length, "classes"], [models.length, models.length === 1 ? "model" : "models"]];
  for (const [a, b] of facts) document.getElementById("facts").append(h("span", {}, String(a), " ", b));

  function verdict() {
    const best = models[0], folds = best.fold_scores.length, sd = deviation(best.fold_scores), test = best.statistics.test;
    const measured = folds ? `mean ${metric} over ${folds} folds` : test ? `accuracy on ${whole(test.n_samples)} samples` : "accuracy";
    const sentence = h("p", { class: "verdict" });
    const more = h("p", { class: "note" });
    if (models.filter((m) => score(m) != null).length < 2) {
      sentence.append(h("strong", {}, name(best.name)), metric === "accuracy" ? ` classifies ${percent(score(best))} of samples correctly.` : ` reaches ${percent(score(best))} ${metric}.`);
    } else {
      const second = models[1], lead = 100 * (score(best) - score(second));
      sentence.append(h("strong", {}, name(best.name)), " comes first, ", ...(rank(second) === 1 ? ["level with "] : [h("strong", {}, lead.toFixed(2) + " points"), " ahead of "]), name(second.name), ".");
      const equal = models.slice(1).filter((m) => m.p_value != null && m.p_value >= 0.05);
      const tested = models.slice(1).some((m) => m.p_value != null);
      if (tested && !equal.length) more.append("Its lead over every other model is larger than the folds scatter (corrected paired t-test, p < 0.05).");
      else if (tested) {
        more.append("No clear difference (p ≥ 0.05) from ");
        equal.slice(0, 4).forEach((m, i) => more.append(i ? ", " : "", name(m.name)));
        more.append(equal.length > 4 ? ` and ${equal.length - 4} more: ` : ": ", "among these, choose the faster or the simpler one.");
      }
    }
    if (baseline) {
      const clear = score(best) > score(baseline) && (baseline.p_value == null || baseline.p_value < 0.05);
      sentence.append(" Always saying ", h("strong", {}, name(baseline.params.says)), ` gives ${percent(score(baseline))}`, clear ? "." : h("strong", { class: "bad" }, ": no clear difference."));
    }
    if (test) more.append(more.childNodes.length ? " " : "", `${percent(test.error)} of its margins on ${folds ? "new" : "these"} samples are not positive.`);
    main.append(h("section", { class: "card hero", id: "verdict", "aria-label": "Result" },
      h("div", { class: "big" }, percent(score(best)), h("small", {}, measured, sd == null ? "" : ` ± ${(100 * sd).toFixed(1)}`)), h("div", {}, sentence, more)));
  }

  // ---- table of models ---------------------------------------------------------------------------------------------
  function strip(m, i, low, high) {
    const w = 120, x = (v) => 8 + ((v - low) / (high - low || 1)) * (w - 16), c = colour(i);
    const values = scores(m), centre = score(m), sd = deviation(m.fold_scores);
    return h("svg", { width: w, height: 22, role: "img", "aria-label": `folds: ${values.map((v) => percent(v)).join(", ")}` },
      h("line", { x1: 8, x2: w - 8, y1: 11, y2: 11, class: "grid" }),
      sd == null ? null : h("line", { x1: x(Math.max(low, centre - sd)), x2: x(Math.min(high, centre + sd)), y1: 11, y2: 11, style: { stroke: c, "stroke-width": "3", opacity: ".45" } }),
      values.map((v) => h("circle", { cx: x(v), cy: 11, r: 2.5, style: { fill: c, opacity: ".55" } })),
      centre == null ? null : h("circle", { cx: x(centre), cy: 11, r: 5, style: { fill: c } }));
  }
  const ratio = (a, b) => (a == null || !(b > 0) ? "–" : (a / b).toFixed(2)); // margins of different models have different units
  function modelTable() {
    const all = models.flatMap(scores), others = Object.keys(METRICS).filter((k) => k !== (data.metric || "accuracy"));
    const low = Math.min(...all), high = Math.max(...all), folds = models.some((m) => m.fold_scores.length);
    const given = (f) => models.some((m) => f(m) != null), test = (m) => m.statistics.test || {};
    const columns = [ // title, cell, whether a model has something to show
      [folds ? "Folds" : "", (m, i) => strip(m, i, low, high), folds || models.length > 1],
      [{ "balanced-accuracy": "Balanced" }[data.metric] || capital(metric), (m) => h("strong", {}, percent(score(m), 2)), true],
      ["± sd", (m) => { const sd = deviation(m.fold_scores); return sd == null ? "–" : (100 * sd).toFixed(2); }, folds],
      ...others.map((k) => [{ accuracy: "Accuracy", "balanced-accuracy": "Balanced", "macro-f1": "Macro-F1" }[k], (m) => (m.metrics[k] ? percent(mean(m.metrics[k])) : "–"), given((m) => m.metrics[k])]),
      ["p", (m) => (m.p_value == null ? "–" : m.p_value < 0.001 ? "< 0.001" : m.p_value.toFixed(3)), given((m) => m.p_value)],
      ["Fit", (m) => seconds(m.fit_time), given((m) => m.fit_time)],
      ["Predict", (m) => seconds(m.predict_time), given((m) => m.predict_time)],
      ["Margin/sd", (m) => ratio(test(m).mean, Math.sqrt(test(m).variance)), given((m) => test(m).mean)],
      ["5 %/median", (m) => ratio(test(m).q05, test(m).median), given((m) => test(m).q05)],
    ].filter(([, , wanted]) => wanted);
    const narrow = ([title]) => (title === "Folds" || !title ? "wide-only" : "");
    const body = h("tbody");
    const draw = () => fill(body, models.map((m, i) => h("tr", { class: i === state.model ? "on" : "" },
      h("th", { scope: "row" }, h("button", { type: "button", class: "pick", "aria-pressed": String(i === state.model), onclick: () => choose(i) }, dot(i), h("span", {}, `${rank(m)}.\u00a0`, name(m.name)), i === 0 && models.length > 1 ? h("span", { class: "tag" }, "best") : null)),
      columns.map((c) => h("td", { class: narrow(c) }, c[1](m, i))))), baseline ? [h("tr", { class: "baseline" }, h("th", { scope: "row" }, name(baseline.name)),
      columns.map((c) => h("td", { class: narrow(c) }, c[0] === "Folds" || !c[0] || ["Fit", "Predict", "Margin/sd", "5 %/median"].includes(c[0]) ? "" : c[1](baseline, 7))))] : []);
    const lead = (models.length > 1 ? "Choose a model to see its margins, errors and samples below. " : "") + (given((m) => m.p_value) ? "p: corrected paired t-test against the best. " : "")
      + (given((m) => test(m).mean) ? "Margins are divided, for those of different models have different units: their mean by their standard deviation, the smallest 5 % by the median. Larger is better." : "");
    card("models", models.length > 1 ? "Models" : "Model", lead,
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of models" }, h("table", { class: "models" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Model"), columns.map((c) => h("th", { scope: "col", class: narrow(c) }, c[0])))), body)));
    redraw.push(draw);
  }

  // ---- margin distributions ----------------------------------------------------------------------------------------
  function series() {
    const found = [], common = state.shown.size > 1;
    for (const i of [...state.shown].sort((a, b) => a - b)) {
      const m = models[i].margins;
      if (!m) continue;
      const unit = common ? m.scale : 1;
      for (const part of ["test", "train"]) {
        if (!state.parts.has(part) || !m.counts[part]) continue;
        const rows = m.counts[part].filter((_, r) => !state.classes.size || (r < m.classes.length && state.classes.has(m.classes[r])));
        const n = m.counts[part][0].length, bins = new Array(n).fill(0);
        for (const row of rows) row.forEach((v, j) => (bins[j] += v));
        const total = bins.reduce((s, v) => s + v, 0);
        if (!total) continue;
        let sum = 0;
        const cumulative = [0, ...bins.map((v) => (sum += v) / total)];
        let wide = 1; // few samples need wider bars: about 2 n^(1/3) of them
        while (n % (2 * wide) === 0 && n / (2 * wide) >= Math.max(10, 2 * Math.cbrt(total))) wide *= 2;
        const bars = bins.reduce((all, v, j) => ((all[Math.floor(j / wide)] = (all[Math.floor(j / wide)] || 0) + v), all), []);
        found.push({ i, part, low: m.low / unit, high: m.high / unit, n, total, cumulative, density: bars.map((v) => (v / total) * bars.length / ((m.high - m.low) / unit)) });
      }
    }
    return found;
  }
  const below = (s, x) => {
    const t = ((x - s.low) / (s.high - s.low)) * s.n, j = Math.floor(t);
    return t <= 0 ? 0 : t >= s.n ? 1 : s.cumulative[j] + (t - j) * (s.cumulative[j + 1] - s.cumulative[j]);
  };
  function ticks(low, high, count) {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((s) => s * power >= raw) * power;
    const found = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) found.push(Math.abs(v) < step * 1e-6 ? 0 : v);
    return found;
  }
  function marginChart() {
    if (!models.some((m) => m.margins)) return;
    const controls = h("div", { class: "controls" }), chips = h("div", { class: "controls" });
    const box = h("div", { class: "chart", tabindex: "0", role: "group", "aria-label": "Margin distributions. Left and right arrow keys move the reading line." });
    const legend = h("div", { class: "legend" }), live = h("p", { class: "note", "aria-live": "polite", id: "reading" });
    let at = null, scale = null;
    function toggle(set, value, least) {
      if (set.has(value)) { if (set.size > least) set.delete(value); } else set.add(value);
      update();
    }
    function drawControls() {
      const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
      const keyed = (key, node) => { node.dataset.key = key; return node; };
      const kinds = [["cumulative", "Cumulative"], ["histogram", "Histogram"], ["classes", "By class"]].map(([k, t]) => keyed("kind" + k, chip(t, state.kind === k, () => { state.kind = k; update(); })));
      const parts = [["test", "Test"], ["train", "Train"]].filter(([p]) => models.some((m) => m.margins && m.margins.counts[p])).map(([p, t]) => keyed("part" + p, chip(t, state.parts.has(p), () => toggle(state.parts, p, 1))));
      fill(controls, group("Show", ...kinds), parts.length > 1 ? group("Samples", ...parts) : null,
        models.length > 1 ? group("Models", ...models.map((m, i) => (m.margins ? keyed("model" + i, chip([dot(i), name(m.name)], state.shown.has(i), () => toggle(state.shown, i, 1))) : null))) : null);
      const own = (models.find((m) => m.margins)).margins.classes;
      fill(chips, group("Classes", keyed("all", chip("All", !state.classes.size, () => { state.classes.clear(); update(); })),
        ...own.map((c) => keyed("class" + c, chip(name(dataset.classes[c]), state.classes.has(c), () => toggle(state.classes, c, 0))))));
      if (focused) for (const node of [...controls.querySelectorAll("button"), ...chips.querySelectorAll("button")]) if (node.dataset.key === focused) node.focus();
    }
    function draw() {
      if (state.kind === "classes") { byClass(); return; }
      const all = series(), width = Math.max(280, box.clientWidth || 900), height = width < 520 ? 260 : 340;
      const left = 46, right = 10, top = 10, bottom = 44;
      if (!all.length) { fill(box, h("p", { class: "note" }, "No samples of these classes.")); scale = null; fill(legend); live.textContent = ""; return; }
      const low = Math.min(...all.map((s) => s.low)), high = Math.max(...all.map((s) => s.high));
      const peak = state.kind === "cumulative" ? 1 : 1.05 * Math.max(...all.flatMap((s) => s.density));
      const x = (v) => left + ((v - low) / (high - low)) * (width - left - right), y = (v) => top + (1 - v / peak) * (height - top - bottom);
      scale = { low, high, left, right, width, x, y, all };
      const svg = h("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${state.kind} distribution of margins` });
      for (const v of ticks(0, peak, 4)) svg.append(h("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }), h("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, state.kind === "cumulative" ? Math.round(100 * v) + " %" : number(v)));
      for (const v of ticks(low, high, width < 520 ? 4 : 8)) svg.append(h("text", { x: x(v), y: height - bottom + 18, "text-anchor": "middle" }, number(v)));
      svg.append(h("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, state.shown.size > 1 ? "margin / mean absolute margin" : "margin (score of the true class − best other score)"));
      svg.append(h("line", { class: "zero", x1: x(0), x2: x(0), y1: top, y2: height - bottom }));
      for (const s of all) {
        const pieces = state.kind === "cumulative" ? s.n : s.density.length;
        const edge = (j) => x(s.low + ((s.high - s.low) * j) / pieces), c = colour(s.i), dash = s.part === "train" ? "5 4" : null;
        let path = "";
        if (state.kind === "cumulative") s.cumulative.forEach((v, j) => (path += `${j ? "L" : "M"}${edge(j).toFixed(1)},${y(v).toFixed(1)}`));
        else {
          path = `M${edge(0).toFixed(1)},${y(0)}`;
          s.density.forEach((v, j) => (path += `L${edge(j).toFixed(1)},${y(v).toFixed(1)}L${edge(j + 1).toFixed(1)},${y(v).toFixed(1)}`));
          path += `L${edge(pieces).toFixed(1)},${y(0)}`;
          if (s.part === "test") svg.append(h("path", { d: path, style: { fill: c, opacity: ".14" } }));
        }
        svg.append(h("path", { d: path, "stroke-dasharray": dash, "data-series": `${s.i}-${s.part}`, style: { fill: "none", stroke: c, "stroke-width": "2.2", "stroke-linejoin": "round" } }));
      }
      fill(box, svg);
      fill(legend, all.map((s) => h("span", {}, h("i", { class: s.part === "train" ? "dash" : "", style: { "border-color": colour(s.i) } }), name(models[s.i].name), ` · ${models[s.i].margins.counts.train ? s.part + ", " : ""}${whole(s.total)} samples`)));
      if (at == null || at < low || at > high) live.textContent = "Point at the chart, or focus it and use the arrow keys, to read how many samples lie below a margin.";
      else read(at);
    }
    function byClass() { // one strip a class: its margins, its median, and how many are not positive
      const i = [...state.shown].sort((a, b) => a - b)[0], m = models[i].margins, part = m.counts.test ? "test" : "train", width = Math.max(280, box.clientWidth || 900);
      const left = Math.min(150, width * 0.28), right = 64, bottom = 44, row = 30, n = m.counts[part][0].length;
      const rows = m.classes.map((c, r) => ({ c, bins: m.counts[part][r] })).filter(({ c, bins }) => (!state.classes.size || state.classes.has(c)) && bins.some((v) => v));
      const height = 8 + rows.length * row + bottom, x = (v) => left + ((v - m.low) / (m.high - m.low)) * (width - left - right);
      const svg = h("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "classes distribution of margins" });
      const wide = n > 40 && width < 700 ? 4 : 2;
      rows.forEach(({ c, bins }, r) => {
        const total = bins.reduce((s, v) => s + v, 0), base = 8 + (r + 1) * row - 3, bars = [];
        bins.forEach((v, j) => (bars[Math.floor(j / wide)] = (bars[Math.floor(j / wide)] || 0) + v));
        const most = Math.max(...bars), edge = (j) => x(m.low + ((m.high - m.low) * j * wide) / n);
        let path = `M${edge(0).toFixed(1)},${base}`, sum = 0, middle = m.low, wrong = 0;
        bars.forEach((v, j) => (path += `L${edge(j).toFixed(1)},${(base - (v / most) * (row - 8)).toFixed(1)}L${edge(j + 1).toFixed(1)},${(base - (v / most) * (row - 8)).toFixed(1)}`));
        path += `L${edge(bars.length).toFixed(1)},${base}`;
        bins.forEach((v, j) => { const at = m.low + ((m.high - m.low) * (j + 0.5)) / n; if (sum < total / 2 && sum + v >= total / 2) middle = at; sum += v; if (at <= 0) wrong += v; });
        const label = h("text", { x: left - 10, y: base - 6, "text-anchor": "end", class: "label" }, cut(dataset.classes[c], width < 520 ? 11 : 20));
        svg.append(h("line", { class: "grid", x1: left, x2: width - right, y1: base, y2: base }), h("path", { d: path, style: { fill: colour(i), opacity: ".3" }, "data-class": c }),
          h("line", { x1: x(middle), x2: x(middle), y1: base, y2: base - row + 8, style: { stroke: colour(i), "stroke-width": "2" } }), label,
          h("text", { x: width - right + 8, y: base - 6, class: wrong ? "wrong" : "" }, percent(wrong / total)));
      });
      for (const v of ticks(m.low, m.high, width < 520 ? 3 : 8)) svg.append(h("text", { x: x(v), y: height - bottom + 18, "text-anchor": "middle" }, number(v)));
      svg.append(h("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "margin"), h("text", { x: width - 4, y: height - bottom + 18, "text-anchor": "end" }, "≤ 0"), h("line", { class: "zero", x1: x(0), x2: x(0), y1: 4, y2: height - bottom }));
      scale = null;
      fill(box, svg); fill(legend, h("span", {}, h("i", { style: { "border-color": colour(i) } }), name(models[i].name), ` · ${part} samples`));
      live.textContent = "A strip for each class, as high as its fullest bin; the line is its median, the share at the right is not positive.";
    }
    const cut = (t, n) => (t.length > n ? t.slice(0, n - 1) + "…" : t);
    function read(value) {
      if (!scale) return;
      at = Math.min(scale.high, Math.max(scale.low, value));
      box.querySelectorAll(".cross, .tip, .mark").forEach((n) => n.remove());
      const svg = box.querySelector("svg"), px = scale.x(at), h2 = Number(svg.getAttribute("height"));
      svg.append(h("line", { class: "cross", x1: px, x2: px, y1: 10, y2: h2 - 44 }));
      const rows = scale.all.map((s) => ({ s, f: below(s, at) }));
      if (state.kind === "cumulative") for (const { s, f } of rows) svg.append(h("circle", { class: "mark", cx: px, cy: scale.y(f), r: 4, style: { fill: colour(s.i), stroke: "var(--card)", "stroke-width": "1.5" } }));
      const tip = h("div", { class: "tip" }, h("div", {}, "margin ≤ ", number(at)), rows.slice(0, 8).map(({ s, f }) => h("div", {}, dot(s.i), h("span", { class: "text" }, name(models[s.i].name), " · ", s.part), h("b", {}, percent(f)))));
      box.append(tip);
      const w = tip.offsetWidth;
      tip.style.left = Math.max(0, px + 14 + w > scale.width ? px - w - 14 : px + 14) + "px";
      live.textContent = `Margin up to ${number(at)}: ` + rows.map(({ s, f }) => `${percent(f)} of the ${s.part} samples (${models[s.i].name})`).join("; ") + ".";
    }
    function clear() { at = null; box.querySelectorAll(".cross, .tip, .mark").forEach((n) => n.remove()); }
    box.addEventListener("pointermove", (e) => { if (scale) read(scale.low + ((e.clientX - box.getBoundingClientRect().left - scale.left) / (scale.width - scale.left - scale.right)) * (scale.high - scale.low)); });
    box.addEventListener("pointerleave", clear);
    box.addEventListener("keydown", (e) => {
      if (!scale) return;
      const step = (scale.high - scale.low) / (e.shiftKey ? 10 : 80), middle = at == null ? 0 : at;
      const moves = { ArrowLeft: middle - step, ArrowRight: middle + step, Home: scale.low, End: scale.high };
      if (e.key in moves) { e.preventDefault(); read(moves[e.key]); } else if (e.key === "Escape") clear();
    });
    function update() { drawControls(); draw(); }
    const left = dataset.classes.length - models.find((m) => m.margins).margins.classes.length;
    card("margins", "Margin distributions", "The margin of a sample is positive where the model is right, and large where it is sure. A good model has few samples left of zero and a steep rise behind it." + (left > 0 ? ` The ${left} rarest classes are only part of “All”.` : ""), controls, chips, box, legend, live);
    redraw.push(update);
    if (window.ResizeObserver) { let last = 0; new ResizeObserver(() => { if (box.clientWidth !== last) { last = box.clientWidth; draw(); } }).observe(box); }
  }

  // ---- matrices ----------------------------------------------------------------------------------------------------
  function matrix(values, names, shade, show, describe, note) {
    const cell = (v, i, j) => {
      const [tone, strength] = shade(v, i, j);
      return h("td", { class: strength > 0.55 ? "strong" : "", style: { "--tone": tone, "--v": strength.toFixed(3) }, title: describe(v, i, j), onpointerenter: () => (note.textContent = describe(v, i, j)) }, show(v, i, j));
    };
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Matrix" }, h("table", { class: "matrix" },
      h("thead", {}, h("tr", {}, h("td", { style: { background: "none" } }), names.map((n) => h("th", { scope: "col", title: n }, name(n))))),
      h("tbody", {}, values.map((row, i) => h("tr", {}, h("th", { scope: "row", title: names[i] }, name(names[i])), row.map((v, j) => cell(v, i, j)))))));
  }
  function matrices() {
    const two = h("div", { class: "two" });
    main.append(two);
    const boxes = ["confusion", "pairwise"].map((id) => h("section", { class: "card", id }));
    two.append(...boxes);
    redraw.push(() => {
      const m = models[state.model], names = m.matrix_classes.map((c) => dataset.classes[c]);
      const some = names.length < dataset.classes.length ? ` The ${names.length} of ${dataset.classes.length} classes with most errors.` : "";
      const strangers = m.unknown ? ` ${whole(m.unknown)} test samples are of classes that the model was not fitted to: mistakes that are not shown.` : "";
      if (m.confusion) {
        const note = h("p", { class: "note" }), sums = m.confusion.map((r, i) => Math.max(1, m.confusion_totals[i] || r.reduce((s, v) => s + v, 0)));
        const worst = Math.max(0.02, ...m.confusion.flatMap((r, i) => r.map((v, j) => (i === j ? 0 : v / sums[i]))));
        note.textContent = "Errors are red, the stronger the larger their share of the row.";
        fill(boxes[0], h("h2", {}, "Confusion matrix"), h("p", { class: "lead" }, "Rows: true class. Columns: prediction of ", name(m.name), m.fold_scores.length ? " on the test samples of the first fold." : ".", some, strangers),
          matrix(m.confusion, names, (v, i, j) => (i === j ? ["var(--good)", 0.85 * (v / sums[i]) ** 2] : ["var(--bad)", v ? 0.15 + 0.75 * (v / sums[i] / worst) : 0]), (v) => (v ? String(v) : ""),
            (v, i, j) => `${v} of ${sums[i]} samples of “${names[i]}” ${i === j ? "are classified correctly" : `are taken for “${names[j]}”`}.`, note), note);
      }
      if (!m.confusion && m.worst_pairs.length) {
        const top = m.top5 == null ? "" : ` For ${percent(m.top5)} of the test samples the true class is among the five best.`
          + (m.macro_f1 == null ? "" : ` Macro-F1 is ${percent(m.macro_f1)}.`);
        fill(boxes[0], h("h2", {}, "Worst pairs"), h("p", { class: "lead" }, `The most frequent errors of `, name(m.name), ` among ${whole(dataset.classes.length)} classes.`, top, strangers),
          region("Worst pairs", h("table", {}, h("thead", {}, h("tr", {}, ["True class", "Taken for", "Samples"].map((t) => h("th", { scope: "col" }, t)))),
            h("tbody", {}, m.worst_pairs.map(([i, j, n]) => h("tr", {}, h("th", { scope: "row" }, name(dataset.classes[i])), h("td", {}, name(dataset.classes[j])), h("td", {}, whole(n))))))));
      }
      boxes[0].hidden = !m.confusion && !m.worst_pairs.length;
      boxes[1].hidden = !m.pairwise;
      if (m.pairwise) {
        const note = h("p", { class: "note" }), flat = m.pairwise.flat().filter((v) => v != null), low = Math.min(...flat), high = Math.max(...flat);
        const errors = []; // both ways together
        if (m.confusion) names.forEach((_, i) => names.forEach((__, j) => { if (i < j && m.confusion[i][j] + m.confusion[j][i]) errors.push([i, j, m.confusion[i][j] + m.confusion[j][i]]); }));
        errors.sort((a, b) => b[2] - a[2]);
        note.textContent = errors.length ? "Pairs with most errors: " + errors.slice(0, 3).map(([i, j, n]) => `“${names[i]}” and “${names[j]}” (${n})`).join(", ") + "." : "No pair of classes is confused here.";
        fill(boxes[1], h("h2", {}, "Margins between classes"), h("p", { class: "lead" }, m.pairwise_quantity.includes("w") && !m.pairwise_quantity.includes("gap") ? `Width of the margin between two classes, ${m.pairwise_quantity}: the darker, the wider. It says how the model divides the room, not how often it errs.` : "Median score gap between the true class (row) and a rival (column): the darker, the larger.", some),
          matrix(m.pairwise, names, (v) => ["var(--accent)", v == null ? 0 : 0.08 + 0.82 * ((v - low) / (high - low || 1))], (v) => (v == null ? "" : names.length <= 12 ? Number(v.toPrecision(2)).toString() : ""),
            (v, i, j) => (v == null ? "" : `“${names[i]}” and “${names[j]}”: ${number(v)}.`), note), note);
      }
    });
  }

  // ---- classes, calibration, features ------------------------------------------------------------------------------
  const share = (v, tone) => (v == null ? "–" : h("span", { class: "share" }, h("span", { class: "bar" }, h("span", { style: { width: 100 * v + "%", background: tone } })), percent(v)));
  function classTable() {
    if (!models.some((m) => m.recall.length)) return;
    const lead = h("p", { class: "lead" }), body = h("tbody"), all = h("div", {});
    card("classes", "Classes", null, lead, region("Recall and precision", h("table", {}, h("thead", {}, h("tr", {}, ["Class", "Samples", "Recall", "Precision", "Most often taken for"].map((t) => h("th", { scope: "col" }, t)))), body)), all);
    redraw.push(() => {
      const m = models[state.model], places = new Map(m.matrix_classes.map((c, i) => [c, i]));
      lead.replaceChildren("Recall: how many samples of the class ", name(m.name), " finds. Precision: how many of those that it takes for the class are. The class with the lowest recall first.");
      const order = dataset.classes.map((_, c) => c).filter((c) => m.recall[c] != null || m.precision[c] != null).sort((a, b) => (m.recall[a] ?? 2) - (m.recall[b] ?? 2));
      fill(body, order.slice(0, 40).map((c) => {
        const i = places.get(c), row = m.confusion && i != null ? m.confusion[i] : [];
        const j = row.reduce((best, v, k) => (k !== i && v > (best < 0 ? 0 : row[best]) ? k : best), -1);
        return h("tr", {}, h("th", { scope: "row" }, name(dataset.classes[c])), h("td", {}, whole(dataset.class_counts[c])), h("td", {}, share(m.recall[c], "var(--good)")), h("td", {}, share(m.precision[c], "var(--accent)")),
          h("td", {}, j < 0 ? "" : h("span", {}, name(dataset.classes[m.matrix_classes[j]]), ` (${row[j]})`)));
      }));
      fill(all, order.length > 40 ? h("p", { class: "note" }, `The 40 of ${order.length} classes with the lowest recall.`) : null);
    });
  }
  function calibrationCard() {
    if (!models.some((m) => m.calibration.points)) return;
    const box = h("section", { class: "card", id: "calibration" });
    main.append(box);
    redraw.push(() => {
      const m = models[state.model], c = m.calibration;
      box.hidden = !c.points;
      if (!c.points) return;
      const size = 300, pad = 40, low = Math.min(...c.points.flat().filter((_, i) => i % 3 < 2)), from = Math.max(0, Math.floor(10 * low) / 10), at = (v) => ((v - from) / (1 - from || 1)) * (size - 2 * pad);
      const x = (v) => pad + at(v), y = (v) => size - pad - at(v);
      const svg = h("svg", { viewBox: `0 0 ${size} ${size}`, width: size, height: size, role: "img", "aria-label": "calibration curve: " + c.points.map(([p, a]) => `said ${percent(p)}, right ${percent(a)}`).join("; ") });
      for (const v of ticks(from, 1, 4)) svg.append(h("line", { class: "grid", x1: pad, x2: size - pad, y1: y(v), y2: y(v) }), h("text", { x: pad - 6, y: y(v) + 4, "text-anchor": "end" }, Math.round(100 * v) + " %"), h("text", { x: x(v), y: size - pad + 16, "text-anchor": "middle" }, Math.round(100 * v) + " %"));
      svg.append(h("line", { class: "cross", "stroke-dasharray": "4 4", x1: x(from), y1: y(from), x2: x(1), y2: y(1) }), h("path", { d: c.points.map(([p, a], i) => `${i ? "L" : "M"}${x(p).toFixed(1)},${y(a).toFixed(1)}`).join(""), style: { fill: "none", stroke: colour(state.model), "stroke-width": "2.2" } }),
        ...c.points.map(([p, a]) => h("circle", { cx: x(p), cy: y(a), r: 4, style: { fill: colour(state.model) } })), h("text", { x: size / 2, y: size - 4, "text-anchor": "middle" }, "probability that the model gives"));
      fill(box, h("h2", {}, "Calibration"), h("p", { class: "lead" }, "How often predictions of ", name(m.name), ` are right, against the probability that it gives them; on the dashed line they agree. Mean distance: ${percent(c.error)}.`), h("div", { class: "chart small" }, svg));
    });
  }
  function featuresCard() {
    if (!models.some((m) => m.weights.length || m.permutation.length)) return;
    const box = h("section", { class: "card", id: "features" });
    main.append(box);
    redraw.push(() => {
      const m = models[state.model];
      box.hidden = !m.weights.length && !m.permutation.length;
      const list = (pairs, most, signed) => h("dl", { class: "weights" }, pairs.flatMap(([k, v]) => [h("dt", {}, name(k)), h("dd", {}, h("span", { class: "bar" }, h("span", { style: { width: (100 * Math.abs(v)) / most + "%", background: v < 0 ? "var(--bad)" : signed ? "var(--good)" : "var(--accent)" } })), h("span", { class: "n" }, signed ? (v > 0 ? "+" : "−") + number(Math.abs(Number(v.toPrecision(2)))) : percent(v)))]));
      if (m.weights.length) {
        const most = Math.max(1e-300, ...m.weights.flat().map(([, v]) => Math.abs(v)));
        fill(box, h("h2", {}, "Features that decide"), h("p", { class: "lead" }, "Weights of ", name(m.name), " times the spread of the feature, against the mean of all classes: green speaks for the class, red against it."),
          h("div", { class: "classes" }, m.weights.map((pairs, i) => h("div", {}, h("h3", {}, name(dataset.classes[m.weight_classes[i]])), list(pairs, most, true)))));
      } else fill(box, h("h2", {}, "Features that decide"), h("p", { class: "lead" }, "Accuracy that ", name(m.name), " loses when the values of a column are shuffled."), list(m.permutation, Math.max(...m.permutation.map(([, v]) => v), 1e-300), false));
    });
  }

  // ---- samples -----------------------------------------------------------------------------------------------------
  function picture(sample) {
    const [rows, columns] = dataset.image_shape, canvas = h("canvas", { width: columns, height: rows, role: "img", "aria-label": `picture of row ${sample.row}` });
    const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
    sample.pixels.forEach((v, i) => image.data.set([255 * (1 - v / 99), 255 * (1 - v / 99), 255 * (1 - v / 99), 255], 4 * i));
    context.putImageData(image, 0, 0);
    return canvas;
  }
  function samples() {
    if (!models.some((m) => m.hardest.length)) return;
    const controls = h("div", { class: "controls" }), list = h("ul", { class: "samples" });
    card("samples", "Samples to look at", "Hardest: the smallest margins, where the model is surest and wrong. Most ambiguous: two classes are nearly tied. Wrong labels often show up here. Signed numbers are the parts of a linear model’s margin: + speaks for the true class, − for its rival.", controls, list);
    redraw.push(function draw() {
      const m = models[state.model];
      fill(controls, group("Show", ...[["hardest", "Hardest"], ["ambiguous", "Most ambiguous"]].map(([k, t]) => chip(t, state.samples === k, (e) => { const label = e.currentTarget.textContent; state.samples = k; draw(); [...controls.querySelectorAll("button")].find((b) => b.textContent === label).focus(); }))));
      list.classList.toggle("wide", !dataset.image_shape);
      fill(list, m[state.samples].map((s) => h("li", {}, s.pixels ? picture(s) : null, h("div", {}, "row ", String(s.row), " · ", h("span", { class: "m " + (s.margin > 0 ? "good" : "bad") }, number(s.margin))),
        h("div", {}, "true ", h("strong", {}, name(s.true))), h("div", {}, "predicted ", h("strong", { class: s.true === s.predicted ? "good" : "bad" }, name(s.predicted))),
        s.deciding && s.deciding.length ? h("dl", { class: "deciding" }, s.deciding.slice(0, 5).flatMap(([k, v]) => [h("dt", {}, name(k)), h("dd", { class: v > 0 ? "good" : "bad" }, (v > 0 ? "+" : "−") + number(Math.abs(Number(v.toPrecision(2)))))])) : null,
        s.values.length ? h("dl", {}, s.values.flatMap(([k, v]) => [h("dt", {}, name(k)), h("dd", {}, number(v))])) : null)));
    });
  }

  // ---- bounds and certificates -------------------------------------------------------------------------------------
  function theory() {
    const box = h("section", { class: "card", id: "theory" });
    main.append(box);
    const table = (head, rows) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": head[0] }, h("table", {}, h("thead", {}, h("tr", {}, head.map((c) => h("th", { scope: "col" }, c)))), h("tbody", {}, rows)));
    redraw.push(() => {
      const m = models[state.model], c = m.certificate, gap = c.dual_gap_;
      const rows = [["Objective", number(c.objective_)], ["Relative duality gap", number(gap)], ["Tolerance", number(c.tol)], ["Iterations", number(c.n_iter_)]].filter(([, v]) => v !== "–");
      const reached = typeof gap === "number" && typeof c.tol === "number" ? (gap <= c.tol ? h("p", { class: "good" }, `✓ The certificate was reached: the ${c.convex_part ? "last convex problem is solved" : "objective is optimal"} within the tolerance.`) : h("p", { class: "bad" }, "✗ The fit stopped before its tolerance: raise max_iter.")) : null;
      const settings = Object.entries(m.params);
      fill(box, h("h2", {}, "What is proved"), h("p", { class: "lead" }, "For ", name(m.name), ", fitted on the training samples."),
        rows.length ? h("div", {}, h("h3", {}, c.objective_ == null ? "Fit (this estimator publishes no certificate)" : "Certificate of the fit"), reached, h("div", { class: "pairs" }, rows.map(([k, v]) => h("div", {}, h("span", {}, k), h("span", {}, v))))) : h("p", { class: "note" }, "This estimator publishes no certificate."),
        m.bounds.length ? h("details", {}, h("summary", {}, "Bounds on the error of new samples", m.bounds.every((b) => b.total == null || b.total > 1) ? " (vacuous here)" : ""), h("p", { class: "note" }, "With probability 95 %. A total above 1 is vacuous: it says nothing about the error itself; it still compares models on the same data."),
          table(["Bound", "Constants", "Empirical", "Complexity", "Confidence", "Total"], m.bounds.map((b) => h("tr", {}, h("td", {}, b.bound), h("td", {}, b.version), ...["empirical", "complexity", "confidence", "total"].map((k) => h("td", {}, number(b[k]), k === "total" && b.total > 1 ? " (vacuous)" : "")))))) : h("p", { class: "note" }, m.statistics.train || !m.statistics.test ? "No bound: those of the papers are for machines with one vector for each class and its kernel." : "No bound: it needs the training samples, which this page was not given."),
        settings.length ? h("details", {}, h("summary", {}, "Parameters"), h("div", { class: "pairs" }, settings.map(([k, v]) => h("div", {}, h("span", {}, name(k)), h("span", {}, name(v)))))) : null);
    });
  }

  function reproduce() {
    const status = h("span", { role: "status" });
    const copy = h("button", { type: "button", class: "chip", onclick: async () => { try { await navigator.clipboard.writeText(data.command); status.textContent = "copied"; } catch { getSelection().selectAllChildren(code); status.textContent = "selected"; } } }, "Copy");
    const code = h("pre", { dir: "ltr" }, data.command);
    card("reproduce", "Reproduce", null, data.command ? h("div", { class: "copy" }, code, copy, status) : null,
      h("div", { class: "pairs" }, Object.entries(data.versions).map(([k, v]) => h("div", {}, h("span", {}, name(k)), h("span", {}, name(v))))));
    if (data.created) document.getElementById("foot").append("Made ", data.created, ". This file holds everything it shows; it loads nothing from elsewhere.");
  }

  function hints() { // a word below what is wider than the screen
    for (const node of document.querySelectorAll(".scroll")) node.classList.toggle("more", node.scrollWidth > node.clientWidth + 4);
  }
  const redraw = [];
  function choose(i) {
    state.model = i;
    state.shown = new Set(models[i].margins ? [i] : [...state.shown]);
    redraw.forEach((draw) => draw());
    const picks = document.querySelectorAll(".pick");
    if (picks[i]) picks[i].focus({ preventScroll: true });
  }
  if (!models.length) { main.append(h("p", { class: "card" }, "There are no models in this report.")); return; }
  if (!models[0].margins) state.shown = new Set([Math.max(0, models.findIndex((m) => m.margins))]);
  verdict(); modelTable(); classTable(); marginChart(); matrices(); featuresCard(); calibrationCard(); samples(); theory(); reproduce();
  redraw.push(hints);
  redraw.forEach((draw) => draw());
  addEventListener("resize", hints);
  document.documentElement.dataset.ready = "true";
})();
