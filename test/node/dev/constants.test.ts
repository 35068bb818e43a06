import { expect, it } from "vitest";
import { weirModule } from "../../../dev/workerd.ts";

const FILE = "src/control/protocol.ts";

it.each([
  [FILE, "UPLOAD_INTERVAL_MS"],
  // Other files define this name too.
  ["src/control/control-link.ts", "MAX_WAIT_MS"],
])("replaces a constant in one bundle only: %s %s", async (file, name) => {
  const changed = await weirModule({ [file]: { [name]: 12_345_678 } });
  expect(changed.match(/=12345678\b/g)).toHaveLength(1);
  expect(/=12345678\b/.test(await weirModule())).toBe(false);
});

it.each([
  [FILE, "UPLOAD_INTERVAL"],
  [FILE, "GLOBAL_OBJECT"],
  ["src/gateway/log.ts", "UPLOAD_INTERVAL_MS"],
  ["src/no-file.ts", "UPLOAD_INTERVAL_MS"],
])("throws if %s does not define the number %s", async (file, name) => {
  await expect(weirModule({ [file]: { [name]: 1 } })).rejects.toThrow(`${name} of ${file}`);
});
