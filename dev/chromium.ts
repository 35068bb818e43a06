import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

/** The names of the program, in the order of preference. Without the parts for a window, pages load in half the time. */
const NAMES = [
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome-stable",
  "google-chrome",
];

const ELSEWHERE = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/**
 * Returns the path of a Chromium or Chrome: the environment variable CHROME_PATH, or else the first one
 * in PATH. Playwright's own download is not used, so that `npm install` stays small.
 *
 * @returns undefined if there is none
 * @throws if CHROME_PATH is set to a file that does not exist
 */
export function findChromium({ CHROME_PATH, PATH = "" } = process.env): string | undefined {
  if (CHROME_PATH) {
    if (!existsSync(CHROME_PATH)) throw new Error(`CHROME_PATH does not exist: ${CHROME_PATH}`);
    return CHROME_PATH;
  }
  const inPath = NAMES.flatMap((name) => PATH.split(delimiter).map((folder) => join(folder, name)));
  return [...inPath, ...ELSEWHERE].find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Starts a browser without a window. */
export function launchChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({
    executablePath,
    // Chromium's sandbox does not work for root, as in most containers. The browser opens only pages of
    // this machine. Colours must not depend on the screen.
    args: ["--no-sandbox", "--force-color-profile=srgb", "--disable-lcd-text"],
  });
}
