import { DefaultReporter, type TestModule, type Vitest } from "vitest/node";

/** The start of a message that workerd writes about an error or an odd call in a test, even if the test expects it. */
const MESSAGE = /^(uncaught exception;|console warning;|A header value for )/;

/**
 * Vitest's own reporter, but a file that passes gets no lines. The messages of workerd are printed at the end, if a
 * test has failed: they do not say which test they are about.
 */
export class QuietReporter extends DefaultReporter {
  readonly #messages: string[] = [];

  override onInit(vitest: Vitest): void {
    super.onInit(vitest);
    // The plugin for workerd writes these messages itself, without asking a reporter.
    for (const stream of [process.stdout, process.stderr]) {
      const write = stream.write.bind(stream);
      stream.write = (chunk: string | Uint8Array, ...rest: never[]) => {
        if (typeof chunk !== "string" || !MESSAGE.test(chunk)) return write(chunk, ...rest);
        this.#messages.push(chunk);
        return true;
      };
    }
  }

  protected override printTestModule(module: TestModule): void {
    if (module.state() === "failed") super.printTestModule(module);
  }

  override onTestRunEnd(...result: Parameters<DefaultReporter["onTestRunEnd"]>): void {
    super.onTestRunEnd(...result);
    const messages = this.#messages.splice(0);
    const [, , reason] = result;
    if (reason === "failed" && messages.length > 0) {
      console.error(`Messages of workerd:\n${messages.join("")}`);
    }
  }
}
