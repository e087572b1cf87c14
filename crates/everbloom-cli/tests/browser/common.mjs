// A browser that sees this machine alone, and what every page must keep.
import { createRequire } from "node:module";
import { readFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { strict as assert } from "node:assert";

const folder = process.env.EVERBLOOM_BROWSER;
const require = createRequire(join(folder, "here.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.EVERBLOOM_SCREENSHOTS;

export { assert };
export const VIEWS = [390, 1440].flatMap((width) => ["light", "dark"].map((colorScheme) => ({ width, colorScheme })));

export async function withBrowser(act) {
  const browser = await chromium.launch({
    executablePath: join(folder, "chromium"),
    args: ["--no-sandbox", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
  });
  try {
    await act(browser);
  } finally {
    await browser.close();
  }
}

// A page that says nothing on the console and asks nobody else. What is `expected` on the console is the browser's own
// report of a refusal.
export async function open(browser, address, { width, colorScheme }, expected = () => false) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !expected(message.text())) wrong.push("console: " + message.text());
  });
  page.on("pageerror", (error) => wrong.push("error: " + error));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!["data:", "file:"].includes(url.protocol) && url.hostname !== "127.0.0.1") wrong.push("asks " + url);
  });
  await page.goto(address);
  return { page, context, view: `${width}-${colorScheme}`, check: () => assert.deepEqual(wrong, []) };
}

// When something was first to be seen, and what was loaded for the page, answers to its questions apart.
export async function loaded(page) {
  const { paint, bytes, glance, around } = await page.evaluate(() => {
    const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const parts = all.filter((part) => !part.name.includes("/api/"));
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    const took = (name) => performance.getEntriesByName(name)[0]?.duration;
    return { glance: took("glance"), around: took("around"), paint: paint?.startTime, bytes: parts.reduce((sum, part) => sum + part.decodedBodySize, 0) };
  });
  const answer = glance ? `, first answer ${Math.round(glance)} ms later, with curves ${Math.round(around)}` : "";
  console.log(`first paint after ${Math.round(paint)} ms, page and assets ${bytes} bytes${answer}`);
  assert.ok(bytes > 2_000 && bytes < 300_000, bytes + " bytes");
}

export async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const told = found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  assert.deepEqual(told, [], what);
}

export async function fitsWidth(page, what) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${what}: the page is ${wide} px too wide`);
}

export async function picture(page, name) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, name + ".png"), fullPage: true });
}

// Every control in the order in which Tab reaches it, each with a frame that can be seen.
export async function tabbed(page, most = 200) {
  const reached = [];
  await page.evaluate(() => { window.reached = new WeakSet(); });
  for (let step = 0; step < most; step += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const here = document.activeElement;
      if (!here || here === document.body || window.reached.has(here)) return null;
      window.reached.add(here);
      const style = getComputedStyle(here);
      const framed = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || here.type === "file";
      return { name: here.id || here.getAttribute("aria-label") || here.textContent.slice(0, 40), framed };
    });
    if (!at) break;
    reached.push(at);
  }
  const unseen = reached.filter(({ framed }) => !framed).map(({ name }) => name);
  assert.deepEqual(unseen, [], "no frame around what has the focus");
  return reached.map(({ name }) => name);
}
