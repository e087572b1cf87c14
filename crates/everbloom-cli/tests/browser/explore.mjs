// `everbloom explore`: node explore.mjs ADDRESS FILTER SAMPLE PART
import { VIEWS, accessible, assert, fitsWidth, loaded, open, picture, tabbed, withBrowser } from "./common.mjs";
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const [address, filter, sample, part] = process.argv.slice(2);
const done = (page) => page.waitForFunction(() => document.getElementById("state").textContent === "Done.", null, { timeout: 120_000 });
const said = (page) => page.locator("#sentence").textContent();
const isRefusal = (text) => text.includes("status of 400");

// What each control can be set to, one after another, so that every answer is a sensible one.
const CONTROLS = [
  ["stream", "uniform"], ["memory", "8KiB"], ["fpr", "2%"], ["expect", "50000"], ["arrivals", "200000"], ["fnr", "99%"], ["fnr", ""],
  ["stream", "zipf"], ["exponent", "1.2"], ["arrivals", ""], ["stream", "phases"], ["phases", "4"], ["stream", "lags"], ["lags", "50 1\n5000 1"],
  ["importance", "linear"], ["filter", "stable"], ["filter", ""], ["stream", "uniform"], ["cost-fp", "0"], ["cost-fn", "1"], ["memory-cost", "1"],
];

async function set(page, name, value) {
  const field = page.locator("#" + name);
  const isSelect = await field.evaluate((element) => element.tagName === "SELECT");
  if (isSelect) await field.selectOption(value);
  else await field.fill(value);
}

async function looks(browser) {
  for (const view of VIEWS) {
    const { page, context, view: name, check } = await open(browser, address, view);
    await done(page);
    await loaded(page);
    assert.ok((await said(page)).includes("by simulation"));
    await accessible(page, name);
    await fitsWidth(page, name);
    await picture(page, "explore-" + name);
    check();
    await context.close();
  }
}

async function controls(browser) {
  const { page, context, check } = await open(browser, address, VIEWS[2], isRefusal);
  await done(page);
  for (const [name, value] of CONTROLS) {
    const asked = page.waitForRequest((request) => {
      const url = new URL(request.url());
      return url.pathname === "/api/glance" && (url.searchParams.get(name) ?? "") === value;
    });
    await set(page, name, value);
    await asked;
    assert.equal(new URL(page.url()).searchParams.get(name) ?? "", value, "the address carries " + name);
  }
  await done(page);
  const glances = await page.evaluate(() => performance.getEntriesByName("glance").map((one) => Math.round(one.duration)));
  console.log(`from a change to its first answer: ${glances.join(", ")} ms`);
  for (const chart of ["by_lag", "by_importance", "over_time", "frontier", "by_memory", "cost_over_time"]) {
    await page.locator(`[data-name="${chart}"] svg`).waitFor();
  }
  assert.ok((await said(page)).includes("errors cost about"));
  await accessible(page, "with costs");
  await picture(page, "explore-costs");

  // One can go back to where one has looked for a while, and on again.
  const shared = page.url();
  await set(page, "memory", "16KiB");
  await page.waitForURL(/memory=16KiB/);
  await done(page);
  await page.goBack();
  await page.waitForFunction(() => document.getElementById("memory").value === "8KiB");
  assert.equal(page.url(), shared);
  await page.goForward();
  await page.waitForFunction(() => document.getElementById("memory").value === "16KiB");
  await page.goBack();
  await done(page);

  // What is wrong is said at the control, and mended.
  await page.locator("#memory").fill("a lot");
  await page.locator("#error").waitFor();
  assert.ok((await page.locator("#error").textContent()).includes("--memory"));
  assert.equal(await page.locator("#memory").getAttribute("aria-invalid"), "true");
  await accessible(page, "with an error");
  await picture(page, "explore-error");
  await page.locator("#memory").fill("8KiB");
  await page.locator("#error").waitFor({ state: "hidden" });
  await done(page);

  // A colleague who gets the address sees the same.
  const mine = await said(page);
  const other = await open(browser, shared, VIEWS[2]);
  await done(other.page);
  assert.equal(await said(other.page), mine);
  for (const name of ["memory", "cost-fn", "importance", "stream"]) {
    assert.equal(await other.page.locator("#" + name).inputValue(), await page.locator("#" + name).inputValue(), name);
  }
  other.check();
  await other.context.close();

  // The lines can be copied.
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const lines = await page.locator("#lines pre").first().textContent();
  await page.locator("#lines button").first().click();
  await page.getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), lines);

  await page.locator("button[type=reset]").click();
  await page.waitForFunction(() => document.getElementById("memory").value === "64KiB");
  await done(page);
  check();
  await context.close();
}

async function keyboard(browser) {
  // On a slow machine a size is asked for when it is half typed ("16Ki"), and refused.
  const halfTyped = (text) => text.includes("400 (Bad Request)");
  const { page, context, check } = await open(browser, address, VIEWS[0], halfTyped);
  await done(page);
  const reached = await tabbed(page);
  const visible = await page.evaluate(() =>
    [...document.querySelectorAll("form input, form select, form textarea, form button")]
      .filter((element) => element.offsetParent).map((element) => element.id || element.textContent));
  const missed = visible.filter((name) => !reached.includes(name));
  assert.deepEqual(missed, [], "Tab does not reach these");
  assert.ok(reached.some((name) => name.startsWith("chart:")) && reached.some((name) => name.startsWith("Copy the lines")));

  // Values by keys alone.
  await page.locator("#memory").focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("16KiB");
  await page.waitForURL(/memory=16KiB/);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "memory-slider");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.getElementById("memory").value === "22.6KiB");
  await page.locator("#expect").focus();
  await page.keyboard.type("20000");
  await page.locator("#stream").focus();
  await page.keyboard.press("ArrowUp");
  await page.waitForFunction(() => document.getElementById("stream").value === "lags");
  await page.locator("#lags").waitFor();
  await done(page);
  check();
  await context.close();
}

async function files(browser) {
  const { page, context, check } = await open(browser, address, VIEWS[3], isRefusal);
  await done(page);
  await page.locator("#file").setInputFiles(filter);
  await page.locator("#file-rows dd").first().waitFor();
  assert.ok((await page.locator("#file-title").textContent()).includes("The filter in visits.ebf"));
  assert.ok((await page.locator("#file-fill svg").getAttribute("aria-label")).includes("of its cells are in use"));
  await accessible(page, "with a filter");
  await picture(page, "explore-filter");

  // Dropped, not chosen.
  const drop = async (name, text) => {
    const data = await page.evaluateHandle(([name, text]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name));
      return data;
    }, [name, text]);
    await page.dispatchEvent("body", "drop", { dataTransfer: data });
  };
  await drop(basename(sample), readFileSync(sample, "utf8"));
  await page.getByText("The sample other.txt: 6,000 lines").waitFor();
  await page.waitForURL(/stream=sample&sample=other.txt/);
  await done(page);

  // Another key: the file is read again, with what is wrong about it at the control.
  const state = page.locator("#file-state");
  const wrong = page.locator("#file-error");
  await drop("visits.csv", "who,when\n" + "ann,1\nbob,2\nann,3\n\"x, y\",4\n".repeat(400));
  await page.getByText("The sample visits.csv: 1,601 lines, 5 of them different.").waitFor();
  await page.locator("#form").selectOption("csv");
  await page.locator("#key").fill("whom");
  await page.locator("#header").check();
  await wrong.waitFor();
  assert.ok((await wrong.textContent()).includes("whom"), await wrong.textContent());
  assert.equal(await page.locator("#key").getAttribute("aria-invalid"), "true");
  await accessible(page, "with a wrong key");
  await page.locator("#key").fill("who");
  await page.getByText("The sample visits.csv: 1,600 lines, 3 different keys in who.").waitFor();
  assert.ok(await wrong.isHidden());
  await done(page);
  assert.ok((await page.locator("#lines pre").first().textContent()).includes("--csv --header --key who"));
  await picture(page, "explore-sample");

  for (const [name, text, said] of [["broken.ebf", "no filter", "broken.ebf: "], ["empty.csv", "", "empty.csv: "]]) {
    await drop(name, text);
    await page.waitForFunction((said) => document.getElementById("file-error").textContent.startsWith(said), said);
    assert.equal(await state.textContent(), "");
  }
  check();
  await context.close();
}

await withBrowser({ looks, controls, keyboard, files }[part]);
