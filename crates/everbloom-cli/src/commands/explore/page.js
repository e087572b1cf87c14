// The controls on the left, the address, and the results on the right. No library, nothing from elsewhere.
"use strict";

const byId = (id) => document.getElementById(id);
const form = byId("settings");
const results = byId("results");
const page = Math.random().toString(36).slice(2);
const MOST_BYTES = 256 * 1024 * 1024;
// So long after the last change the simulations begin, and what is half typed is called wrong.
const SETTLED = 250;
// Keys that come faster than this belong together.
const TYPED = 80;
const HALF_TYPED = 500;

// ---- sliders: what they stand for, as one would type it, and back

const UNITS = ["", "KiB", "MiB", "GiB", "TiB"];
const round = (number) => Number(number.toPrecision(2));
const sliders = {
  memory: {
    text: (power) => {
      const bytes = 2 ** power / 8;
      const unit = Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
      return Number((bytes / 1024 ** unit).toPrecision(3)) + (UNITS[unit] || "B");
    },
    power: (text) => {
      const parts = /^([\d.]+)\s*([kmgt]?)i?b?$/i.exec(text.trim());
      return parts ? Math.log2(8 * parts[1] * 1024 ** " kmgt".indexOf(parts[2].toLowerCase() || " ")) : NaN;
    },
  },
  fpr: {
    text: (power) => round(100 * 10 ** power) + "%",
    power: (text) => Math.log10(text.trim().endsWith("%") ? parseFloat(text) / 100 : Number(text)),
  },
  expect: {
    text: (power) => (power < 6 ? String(round(10 ** power)) : round(10 ** power).toExponential().replace("+", "")),
    power: (text) => Math.log10(Number(text)),
  },
};
const allSliders = [...document.querySelectorAll("[data-of]")];
for (const slider of allSliders) {
  const { text } = sliders[slider.dataset.of];
  slider.addEventListener("input", () => {
    byId(slider.dataset.of).value = text(Number(slider.value));
    slider.setAttribute("aria-valuetext", byId(slider.dataset.of).value);
  });
}
function placeSliders() {
  for (const slider of allSliders) {
    const typed = byId(slider.dataset.of).value;
    const power = sliders[slider.dataset.of].power(typed);
    if (Number.isFinite(power) && document.activeElement !== slider) slider.value = power;
    slider.setAttribute("aria-valuetext", typed || "empty");
  }
}

// ---- the address

const fields = [...form.elements].filter((field) => field.name);

function showFields() {
  for (const part of document.querySelectorAll("[data-for]")) {
    part.hidden = !part.dataset.for.split(" ").includes(byId("stream").value);
  }
  placeSliders();
}

function settings() {
  const said = new URLSearchParams();
  for (const field of fields) {
    const part = field.closest("[data-for]");
    const value = field.value.trim();
    if (value && !(part && part.hidden) && !(field.name === "importance" && value === "none")) said.set(field.name, value);
  }
  return said;
}

// A sample of the command line is the stream, and knows its keys.
function begin() {
  byId("stream").value = byId("stream").dataset.first;
  if (byId("stream").value === "sample") byId("expect").value = "";
}

function readAddress() {
  const said = new URLSearchParams(location.search);
  if (![...said.keys()].length) {
    begin();
    return;
  }
  for (const field of fields) {
    const value = said.get(field.name);
    if (field.name === "sample" && value) addSample(value);
    if (value !== null) field.value = value;
    else if (field.tagName === "INPUT") field.value = "";
    // Choices that are not in the address are the first ones.
    else if (field.tagName === "SELECT" && field.options.length) field.value = field.options[0].value;
  }
}

// ---- asking: a glance at once, one at a time; the rest when nothing has changed for a while

let version = 0;
let changedAt = 0;
let isGlancing = false;
let closer = new AbortController();
let waiting = 0;
let typing = 0;
let isSettled = false;

async function ask(path, said, signal) {
  said.set("page", page);
  const response = await fetch(path + "?" + said, { signal });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error), { status: response.status });
  return answer;
}

function say(state, busy) {
  byId("state").textContent = state;
  results.classList.toggle("busy", busy);
}

function fail(error) {
  if (error.name === "AbortError" || error.status === 409) return;
  const text = error.status ? error.message : "everbloom does not answer; is it still running?";
  byId("error").textContent = text;
  byId("error").hidden = false;
  markWrong(text);
  for (const part of [byId("sentence"), byId("rows"), byId("charts"), byId("lines")]) part.replaceChildren();
  byId("paste").hidden = true;
  byId("jump").textContent = "Something is wrong with the settings";
  say("", false);
}

// The control that an error names, of the settings or of a file.
function markWrong(text, isOfFile = false) {
  const own = (field) => field.id && field.type !== "range" && isOfFile === Boolean(field.closest("#drop"));
  for (const field of [...form.elements].filter(own)) {
    const signs = ["--" + field.id + " ", "--" + field.id + "="].concat(field.value ? "'" + field.value + "'" : []);
    const named = signs.some((sign) => text.includes(sign));
    if (named) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
}

function mended() {
  byId("error").hidden = true;
  markWrong("");
}

// Where one has looked for a while, one can go back to.
function keepAddress(said, isNew) {
  const address = "?" + said;
  if (address === location.search) return;
  if (isNew) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

function changed(isNew = true, wait = 0) {
  showFields();
  version += 1;
  changedAt = performance.now();
  keepAddress(settings(), isNew && isSettled);
  isSettled = false;
  closer.abort();
  clearTimeout(waiting);
  if (isGlancing) return;
  clearTimeout(typing);
  typing = setTimeout(glance, wait);
}

async function glance() {
  isGlancing = true;
  let own;
  do {
    own = version;
    say("Taking a first look.", true);
    try {
      show(await ask("/api/glance", settings()));
      mended();
      if (own !== version) continue;
      performance.measure("glance", { start: changedAt });
      // What it does not find the simulation will.
      const around = await ask("/api/around", settings()).catch(() => null);
      if (around && own === version) {
        showCharts(around.charts);
        performance.measure("around", { start: changedAt });
      }
    } catch (error) {
      const isTyping = document.activeElement.matches("input:not([type=range]), textarea");
      const wrong = own;
      setTimeout(() => { if (wrong === version) fail(error); }, isTyping ? HALF_TYPED : 0);
    }
  } while (own !== version);
  isGlancing = false;
  waiting = setTimeout(lookCloser, SETTLED);
}

async function lookCloser() {
  closer = new AbortController();
  const { signal } = closer;
  isSettled = true;
  try {
    say("A first look so far; simulating.", true);
    show(await ask("/api/simulate", settings(), signal));
    mended();
    say("Simulated; drawing what more memory gains.", true);
    showCharts((await ask("/api/curves", settings(), signal)).charts);
    say("Done.", false);
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

// ---- results

function element(name, text, more = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
  return made;
}

const how = (text) => element("span", text, { class: "how" });

function listRows(list, rows) {
  list.replaceChildren(...rows.flatMap(([name, value]) => [element("dt", name.trim()), element("dd", value)]));
}

function show(answer) {
  const { document: plan, rows } = answer.told;
  // A number and its per cent stay on one line.
  byId("sentence").replaceChildren(plan.summary.replaceAll(" %", "\u00a0%") + " ", how(answer.how));
  const percent = (rate) => Number((100 * rate).toPrecision(2)) + "\u00a0%";
  byId("jump").textContent = plan.filter.split(":")[0] + ": " + percent(plan.stream_fpr) + " of new lines dropped, " +
    percent(plan.predicted_fnr) + " of repeats missed";
  listRows(byId("rows"), rows);
  showLines(plan.commands);
  const wanted = answer.charts.map((chart) => chart.name).concat("by_memory", "frontier");
  for (const figure of [...byId("charts").children]) if (!wanted.includes(figure.dataset.name)) figure.remove();
  showCharts(answer.charts);
}

const ORDER = ["by_lag", "by_importance", "over_time", "frontier", "by_memory", "cost_over_time"];

function showCharts(charts) {
  for (const chart of charts) {
    const figure = element("figure", undefined, { "data-name": chart.name });
    const title = element("h2", chart.title + " ");
    title.append(how(chart.how));
    const drawn = new DOMParser().parseFromString(chart.svg, "image/svg+xml").documentElement;
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", chart.title);
    const box = element("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": "chart: " + chart.title });
    box.append(document.importNode(drawn, true));
    const numbers = element("details");
    numbers.append(element("summary", "Its numbers"), element("pre", chart.csv, { tabindex: "0", role: "region", "aria-label": "numbers: " + chart.title }));
    figure.append(title, box, element("figcaption", chart.caption), numbers);
    const old = byId("charts").querySelector('[data-name="' + chart.name + '"]');
    if (old) {
      numbers.open = old.querySelector("details").open;
      old.replaceWith(figure);
    } else {
      const place = ORDER.indexOf(chart.name);
      const next = [...byId("charts").children].find((other) => ORDER.indexOf(other.dataset.name) > place);
      byId("charts").insertBefore(figure, next || null);
    }
  }
}

const TITLES = { cli: "Command line", rust: "Rust", python: "Python", redis: "Redis" };

function showLines(commands) {
  byId("paste").hidden = false;
  byId("lines").replaceChildren(...commands.map(({ surface, lines }) => {
    const part = element("div", undefined, { class: "paste" });
    const title = element("h3", TITLES[surface] || surface);
    const button = element("button", "Copy", { type: "button", "aria-label": "Copy the lines for " + (TITLES[surface] || surface) });
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(lines);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select and copy";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    title.append(button);
    part.append(title, element("pre", lines, { tabindex: "0", role: "region", "aria-label": "lines for " + (TITLES[surface] || surface) }));
    return part;
  }));
}

// ---- files

function addSample(name) {
  const select = byId("sample");
  if (![...select.options].some((option) => option.value === name)) select.add(new Option(name, name));
  select.value = name;
}

// A filter file begins so, or is called so.
const isFilter = async (file) => (await file.slice(1, 4).text()) === "EBF" || /\.ebf$/i.test(file.name);

// What was chosen last, to be read again with another key.
let last = null;

function tellOfFile(state, error) {
  byId("file-state").textContent = state;
  byId("file-error").textContent = error || "";
  byId("file-error").hidden = !error;
  markWrong(error || "", true);
}

function whereKeysAre() {
  const form = byId("form").value;
  const said = new URLSearchParams({ form });
  for (const part of document.querySelectorAll("[data-form]")) {
    const field = part.querySelector("input");
    part.hidden = !part.dataset.form.split(" ").includes(form);
    if (part.hidden) continue;
    if (field.type !== "checkbox") said.set(field.id, field.value);
    else if (field.checked) said.set(field.id, "yes");
  }
  return said;
}

async function take(file) {
  if (file.size > MOST_BYTES) {
    tellOfFile("", file.name + ": the file is longer than 256 MiB; give a part of it, or its name on the command line: everbloom explore FILE");
    return;
  }
  tellOfFile("Reading " + file.name + ".");
  const isFilterFile = await isFilter(file);
  const said = isFilterFile ? new URLSearchParams() : whereKeysAre();
  said.set("name", file.name);
  last = isFilterFile ? null : file;
  try {
    const response = await fetch((isFilterFile ? "/api/filter?" : "/api/sample?") + said, { method: "POST", body: file });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    if (isFilterFile) {
      tellOfFile("");
      byId("file-title").textContent = "The filter in " + answer.name;
      byId("file-fill").replaceChildren(fill(answer.fill));
      listRows(byId("file-rows"), answer.rows);
      byId("file-result").hidden = false;
      byId("file-result").scrollIntoView({ block: "nearest" });
    } else if (last === file) {
      tellOfFile("The sample " + answer.name + ": " + answer.described + ".");
      addSample(answer.name);
      byId("stream").value = "sample";
      byId("expect").value = "";
      changed();
    }
  } catch (error) {
    tellOfFile("", error instanceof TypeError ? "the file cannot be read, or everbloom does not answer; is it still there?" : error.message);
  }
}

function fill(share) {
  const NS = "http://www.w3.org/2000/svg";
  const percent = (100 * share).toPrecision(3) + " % of its cells are in use";
  const make = (name, more) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
    return made;
  };
  const drawn = make("svg", { class: "fill", viewBox: "0 0 100 4", preserveAspectRatio: "none", role: "img", "aria-label": percent });
  drawn.append(
    make("rect", { class: "used", width: Math.max(100 * share, share > 0 ? 0.3 : 0), height: 4 }),
    make("rect", { class: "all", width: 100, height: 4, "fill-opacity": 0, "vector-effect": "non-scaling-stroke" }),
  );
  return drawn;
}

// ---- beginning

let reading = 0;
form.addEventListener("input", (event) => {
  if (event.target.closest("#drop")) return;
  changed(true, event.target.matches("select, [type=range]") ? 0 : TYPED);
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(() => { begin(); usualKeys(); changed(); }));
byId("drop").addEventListener("input", (event) => {
  const keys = whereKeysAre();
  clearTimeout(reading);
  const isWhole = byId("form").value === "lines" || keys.get("key");
  if (event.target.id !== "file" && last && isWhole) reading = setTimeout(() => take(last), HALF_TYPED);
});
byId("file").addEventListener("change", () => {
  if (byId("file").files[0]) take(byId("file").files[0]);
  // The same file may be chosen again, changed.
  byId("file").value = "";
});
addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("over"); });
addEventListener("dragleave", () => document.body.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  const file = event.dataTransfer.files[0];
  if (file) take(file);
});
addEventListener("popstate", () => { readAddress(); changed(false); });

// Where keys are by the command line.
function usualKeys() {
  const usual = JSON.parse(byId("drop").dataset.keys);
  for (const name of ["form", "key", "delimiter"]) byId(name).value = usual[name] ?? "";
  byId("header").checked = usual.header;
  whereKeysAre();
}

usualKeys();
readAddress();
changed(false);
