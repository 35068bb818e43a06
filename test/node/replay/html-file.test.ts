import { readdir, readFile, readlink, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CommandFailure } from "../../../cli/command-failure.ts";
import { checkHtmlFile, writeHtmlFile } from "../../../cli/replay/html-file.ts";
import { printReport, untilInterrupted } from "../../../cli/replay/inputs.ts";
import { callWeir, temporaryFolder } from "../cli/run-weir.ts";
import { generateLog, logText } from "./generated-log.ts";

const PAGE = "<!doctype html>new";
const OLDER = "<!doctype html>older";
const NEVER = new AbortController().signal;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
const pathOf = (name: string) => join(folder.path, name);
const contentOf = (name: string) => readFile(pathOf(name), "utf8");

beforeEach(async () => {
  folder = await temporaryFolder();
  await folder.write("report.html", OLDER);
  await folder.write("access.log", logText(generateLog(20)));
  const rules = [{ name: "per-ip", limit: 10, window: "1m" }];
  await folder.write("weir.config.json", JSON.stringify({ store: "memory", rules }));
});

afterEach(async () => {
  vi.restoreAllMocks();
  await folder[Symbol.asyncDispose]();
});

/** The message and the exit code of a refusal. */
async function refusal(name: string, inputs: readonly string[] = []) {
  const error = await checkHtmlFile(name, inputs).catch((reason) => reason);
  expect(error).toBeInstanceOf(CommandFailure);
  return { code: error.exitCode, message: error.message };
}

describe("the file of --html", () => {
  it("is left as it is, with no other file, by the check", async () => {
    const before = await readdir(folder.path);
    for (const name of ["report.html", "new.html"]) await checkHtmlFile(pathOf(name), []);
    expect(await readdir(folder.path)).toEqual(before);
    expect(await contentOf("report.html")).toBe(OLDER);
  });

  it("must have a name", async () => {
    expect(await refusal("")).toEqual({ code: 1, message: expect.stringContaining("missing") });
  });

  it.runIf(process.platform === "linux")(
    "must be in a folder for files, and the message names no other file",
    async () => {
      expect(await refusal("/proc/x.html")).toEqual({
        code: 2,
        message:
          "--html /proc/x.html: the page cannot be written. ENOENT: no such file or directory.",
      });
    },
  );

  it("must not be an input, even under another name, or an empty one", async () => {
    await symlink("report.html", pathOf("link.html"));
    await folder.write("empty.log", "");
    for (const [name, input] of [
      ["report.html", "report.html"],
      ["link.html", "report.html"],
      ["report.html", "link.html"],
      ["empty.log", "empty.log"],
    ] as const) {
      const { code, message } = await refusal(pathOf(name), ["-", pathOf(input)]);
      expect([code, message]).toEqual([1, expect.stringContaining("the command reads this file")]);
    }
  });

  it("is printed without codes for a terminal", async () => {
    const { message } = await refusal("none/a\u001b[31mb");
    expect(message).not.toContain("\u001b");
  });

  it.each(["report.html", "new.html"])(
    "is %s if a link leads to it, and the link stays",
    async (target) => {
      await symlink(target, pathOf("link.html"));
      await writeHtmlFile(await checkHtmlFile(pathOf("link.html"), []), PAGE, NEVER);
      expect(await readlink(pathOf("link.html"))).toBe(target);
      expect(await contentOf(target)).toBe(PAGE);
    },
  );

  it("is not written after a signal, and nothing is left behind", async () => {
    const before = await readdir(folder.path);
    const file = await checkHtmlFile(pathOf("report.html"), []);
    await writeHtmlFile(file, PAGE.repeat(100_000), AbortSignal.abort());
    expect(await contentOf("report.html")).toBe(OLDER);
    expect(await readdir(folder.path)).toEqual(before);
  });
});

describe("a report with a page", () => {
  it("is printed, and exits with 130, if Ctrl-C comes while the page is written", async () => {
    const written = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    const before = await readdir(folder.path);
    const file = await checkHtmlFile(pathOf("report.html"), []);
    const code = await untilInterrupted((interruption) =>
      printReport("report", interruption, async () => {
        process.emit("SIGINT", "SIGINT");
        await writeHtmlFile(file, PAGE, interruption.signal);
      }),
    );
    expect(code).toBe(130);
    expect(written.mock.calls).toEqual([["report\n"]]);
    expect(await contentOf("report.html")).toBe(OLDER);
    expect(await readdir(folder.path)).toEqual(before);
  });

  it("is printed once, and exits with 2, if the page cannot be written", async () => {
    const written = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    const reported = vi.spyOn(console, "error").mockReturnValue();
    const code = await untilInterrupted((interruption) =>
      printReport("{}\n", interruption, async () => {
        throw new CommandFailure(2, "no page");
      }),
    );
    expect([code, written.mock.calls, reported.mock.calls]).toEqual([2, [["{}\n"]], [["no page"]]]);
  });

  it.each(["access.log", "weir.config.json"])("does not replace the input %s", async (html) => {
    const before = await contentOf(html);
    const run = await callWeir(
      ["replay", "access.log", "--config", "weir.config.json", "--html", html, "--json"],
      folder.path,
    );
    expect(run.code).toBe(1);
    expect(JSON.parse(run.stdout).error).toContain(`--html ${html}: the command reads this file.`);
    expect(await contentOf(html)).toBe(before);
  });
});
