// `everbloom dedup --serve`: node serve.mjs ADDRESS, while lines come
import { VIEWS, accessible, assert, fitsWidth, loaded, open, picture, tabbed, withBrowser } from "./common.mjs";

const [address] = process.argv.slice(2);
const lines = () => Number(document.querySelector("#rows dd")?.textContent.replaceAll(",", "") ?? 0);
const more = (before) => Number(document.querySelector("#rows dd").textContent.replaceAll(",", "")) > before;

await withBrowser(async (browser) => {
  for (const view of VIEWS) {
    const { page, context, view: name, check } = await open(browser, address, view);
    await page.waitForFunction(lines);
    const before = await page.evaluate(lines);
    await page.waitForFunction(more, before);
    await page.getByText("measured fnr").first().waitFor();
    await page.waitForFunction(() => document.querySelectorAll("#chart svg polyline").length >= 2);
    assert.equal(await page.locator("#state").textContent(), "Running. Updated each second.");
    await loaded(page);
    await accessible(page, name);
    await fitsWidth(page, name);
    await picture(page, "serve-" + name);
    assert.deepEqual(await tabbed(page), ["chart", "/metrics"]);
    check();
    await context.close();
  }
});
