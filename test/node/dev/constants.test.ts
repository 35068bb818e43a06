import { expect, it } from "vitest";
import { weirModule } from "../../../dev/workerd.ts";

const FILE = "src/control/protocol.ts";

it("replaces a constant in the bundle, for this bundle only", async () => {
  const short = await weirModule({ [FILE]: { UPLOAD_INTERVAL_MS: 123 } });
  expect(short).toMatch(/UPLOAD_INTERVAL_MS = 123;/);
  expect(await weirModule()).not.toMatch(/UPLOAD_INTERVAL_MS = 123;/);
});

it("replaces a constant whose name other files define too", async () => {
  const short = await weirModule({ "src/control/control-link.ts": { MAX_WAIT_MS: 123 } });
  expect(short.match(/MAX_WAIT_MS\d* = 123;/g)).toHaveLength(1);
});

it.each([
  [FILE, "UPLOAD_INTERVAL"],
  [FILE, "GLOBAL_OBJECT"],
  ["src/log.ts", "UPLOAD_INTERVAL_MS"],
  ["src/no-file.ts", "UPLOAD_INTERVAL_MS"],
])("throws if %s does not define the number %s", async (file, name) => {
  await expect(weirModule({ [file]: { [name]: 1 } })).rejects.toThrow(`${name} of ${file}`);
});
