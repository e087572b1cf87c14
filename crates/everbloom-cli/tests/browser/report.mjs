// The lab's report: node report.mjs ADDRESS
import { VIEWS, accessible, assert, fitsWidth, open, picture, tabbed, withBrowser } from "./common.mjs";

const [address] = process.argv.slice(2);

await withBrowser(async (browser) => {
  for (const view of VIEWS) {
    const { page, context, view: name, check } = await open(browser, address, view);
    assert.ok((await page.locator("figure svg").count()) > 0);
    await accessible(page, name);
    await fitsWidth(page, name);
    await picture(page, "report-" + name);
    const reached = await tabbed(page);
    assert.equal(reached[0], "To the findings");
    assert.ok(reached.some((what) => what.startsWith("chart:")), "charts can be scrolled by keys");
    // Every link on the page leads somewhere.
    const lost = await page.evaluate(() => [...document.querySelectorAll('a[href^="#"]')]
      .map((link) => link.getAttribute("href").slice(1)).filter((id) => !document.getElementById(id)));
    assert.deepEqual(lost, []);
    check();
    await context.close();
  }
});
