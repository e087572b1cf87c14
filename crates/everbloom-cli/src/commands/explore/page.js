// The controls on the left, the address, and the results on the right. No library, nothing from elsewhere.
"use strict";

const byId = (id) => document.getElementById(id);
const form = byId("settings");
const results = byId("results");
const page = Math.random().toString(36).slice(2);
const MOST_BYTES = 256 * 1024 * 1024;
const WAIT = 120;

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
  }
}

// ---- asking

let asking = new AbortController();
let waiting = 0;

async function ask(path, said, signal) {
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
  say("", false);
}

// The control that an error names.
function markWrong(text) {
  for (const field of fields) {
    const named = text.includes("--" + field.name + " ") || text.includes("--" + field.name + "=");
    if (field.tagName === "INPUT") field.toggleAttribute("aria-invalid", false);
    if (named && field.tagName === "INPUT") field.setAttribute("aria-invalid", "true");
  }
}

async function refresh() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const said = settings();
  history.replaceState(null, "", "?" + said);
  say("Asking formulas.", true);
  try {
    const first = await ask("/api/plan", said, signal);
    byId("error").hidden = true;
    markWrong("");
    if (first.told) show(first);
    say(first.told ? "By formula so far; simulating." : "No formula tells this; simulating.", true);
    said.set("page", page);
    show(await ask("/api/simulate", said, signal));
    say("Simulated; drawing what more memory gains.", true);
    showCharts((await ask("/api/curves", said, signal)).charts);
    say("Done.", false);
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

function later() {
  showFields();
  clearTimeout(waiting);
  waiting = setTimeout(refresh, WAIT);
}

// ---- results

function element(name, text, more = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
  return made;
}

const how = (method) => element("span", "by " + method, { class: "how" });

function listRows(list, rows) {
  list.replaceChildren(...rows.flatMap(([name, value]) => [element("dt", name.trim()), element("dd", value)]));
}

function show(answer) {
  const { document: plan, rows } = answer.told;
  // A number and its per cent stay on one line.
  byId("sentence").replaceChildren(plan.summary.replaceAll(" %", "\u00a0%") + " ", how(answer.method));
  listRows(byId("rows"), rows);
  showLines(plan.commands);
  const wanted = answer.charts.map((chart) => chart.name).concat("by_memory", "frontier");
  for (const figure of [...byId("charts").children]) if (!wanted.includes(figure.dataset.name)) figure.remove();
  showCharts(answer.charts);
}

const ORDER = ["by_lag", "by_importance", "frontier", "by_memory", "over_time"];

function showCharts(charts) {
  for (const chart of charts) {
    const figure = element("figure", undefined, { "data-name": chart.name });
    const title = element("h2", chart.title + " ");
    title.append(how(chart.method));
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

async function take(file) {
  const section = byId("file-result");
  const tell = (title, error) => {
    section.hidden = false;
    byId("file-title").textContent = title;
    byId("file-error").textContent = error || "";
    byId("file-error").hidden = !error;
    byId("file-fill").replaceChildren();
    byId("file-rows").replaceChildren();
  };
  if (file.size > MOST_BYTES) {
    tell(file.name, "the file is longer than 256 MiB; give a part of it, or its name on the command line: everbloom explore FILE");
    return;
  }
  tell("Reading " + file.name);
  const filter = await isFilter(file);
  try {
    const path = (filter ? "/api/filter" : "/api/sample") + "?name=" + encodeURIComponent(file.name);
    const response = await fetch(path, { method: "POST", body: file });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    if (filter) {
      tell("The filter in " + answer.name);
      byId("file-fill").replaceChildren(fill(answer.fill));
      listRows(byId("file-rows"), answer.rows);
    } else {
      tell("The sample " + answer.name + ": " + answer.described);
      addSample(answer.name);
      byId("stream").value = "sample";
      byId("expect").value = "";
      later();
    }
  } catch (error) {
    tell(file.name, error.message);
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

form.addEventListener("input", later);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(() => { begin(); later(); }));
byId("file").addEventListener("input", (event) => event.stopPropagation());
byId("file").addEventListener("change", () => { if (byId("file").files[0]) take(byId("file").files[0]); });
addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("over"); });
addEventListener("dragleave", () => document.body.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  const file = event.dataTransfer.files[0];
  if (file) take(file);
});
addEventListener("popstate", () => { readAddress(); later(); });
readAddress();
showFields();
refresh();
