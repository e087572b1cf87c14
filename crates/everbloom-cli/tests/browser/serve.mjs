// `everbloom dedup --serve`: node serve.mjs ADDRESS, while lines come
import { VIEWS, accessible, assert, fitsWidth, open, picture, tabbed, withBrowser } from "./common.mjs";

const [address] = process.argv.slice(2);
const lines = () => Number(document.querySelector("#rows dd")?.textContent.replaceAll(",", "") ?? 0);

await withBrowser(async (browser) => {
  for (const view of VIEWS) {
    const { page, context, view: name, bytes, check } = await open(browser, address, view);
    await page.waitForFunction(lines);
    const before = await page.evaluate(lines);
    await page.waitForFunction(`(${lines})() > ${before}`);
    await page.getByText("measured fnr").first().waitFor();
    await page.waitForFunction(() => document.querySelectorAll("#chart svg polyline").length >= 2);
    assert.equal(await page.locator("#state").textContent(), "Updated each second.");
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    console.log(`${name}: first paint after ${Math.round(paint)} ms, page and assets ${bytes()} bytes`);
    await accessible(page, name);
    await fitsWidth(page, name);
    await picture(page, "serve-" + name);
    assert.deepEqual(await tabbed(page), ["chart", "/metrics"]);
    check();
    await context.close();
  }
});
