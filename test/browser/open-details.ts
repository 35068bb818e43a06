import type { Page } from "playwright-core";

/** Opens all folded elements, so that their content is checked too. */
export async function openDetails(page: Page): Promise<void> {
  await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) {
      // Only one element of a group can be open.
      details.removeAttribute("name");
      details.open = true;
    }
  });
}
