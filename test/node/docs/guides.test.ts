import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { runWeir } from "../cli/run-weir.ts";
import { createProject, filesOf, isGuide } from "./guides.ts";
import { PAGES, readPage } from "./pages.ts";

// Each test starts processes. The machine may be busy with other tests.
vi.setConfig({ testTimeout: 60_000 });

const MAX_LINES = 120;
const guides = PAGES.filter(isGuide);
const withConfig = guides.filter((path) => filesOf(readPage(path)).has("weir.config.ts"));

describe.each(guides)("%s", (path) => {
  it(`has at most ${MAX_LINES} lines`, () => {
    expect(readPage(path).lines.length).toBeLessThanOrEqual(MAX_LINES);
  });
});

describe.each(withConfig)("the files on %s", (path) => {
  it("pass weir check --strict without a warning, and compile", async () => {
    await using project = await createProject(path);
    const [check, compile] = await Promise.all([
      runWeir(["check", "--strict"], project.path),
      compileProject(project.path),
    ]);
    expect(check).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("is ok") });
    expect(compile).toBe("");
  });
});

/** Compiles a project, and returns the compiler's errors. */
function compileProject(path: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  execFile(
    join(import.meta.dirname, "../../../node_modules/.bin/tsc"),
    ["-p", "."],
    { cwd: path },
    (_, stdout) => resolve(stdout),
  );
  return promise;
}
