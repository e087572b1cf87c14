// Asks each second how the run is, while somebody looks.
"use strict";

const byId = (id) => document.getElementById(id);

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function show(run) {
  const row = ([name, value]) => {
    const [title, text] = [element("dt", name.trim()), element("dd", value)];
    // What belongs to the row before stands a little to the right, as in a terminal.
    title.classList.toggle("part", name.startsWith(" "));
    return [title, text];
  };
  byId("rows").replaceChildren(...run.rows.flatMap(row));
  const drawn = new DOMParser().parseFromString(run.svg, "image/svg+xml").documentElement;
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", "lines a second and repeats of the last minutes");
  byId("chart").replaceChildren(document.importNode(drawn, true));
}

let fails = 0;

function say(text) {
  if (byId("state").textContent !== text) byId("state").textContent = text;
}

async function look() {
  if (!document.hidden) {
    try {
      const response = await fetch("/api/run");
      const run = await response.json();
      show(run);
      fails = 0;
      say(run.state + " Updated each second.");
    } catch {
      fails += 1;
      say("The run has ended, or does not answer.");
    }
  }
  if (fails < 5) setTimeout(look, 1000);
}
look();
