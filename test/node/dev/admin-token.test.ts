import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { devToken } from "../../../dev/admin-token.ts";
import { temporaryFolder } from "../cli/run-weir.ts";

const OWN = "a-token-of-the-user-with-more-than-32-characters";

it("keeps a random token, which is long enough and which only its owner can read", async () => {
  await using folder = await temporaryFolder();
  const token = devToken(folder.path);
  expect(token.value).toMatch(/^[\w-]{32,}$/);
  expect(token.vars).toEqual({ WEIR_ADMIN_TOKEN: token.value });
  expect(devToken(folder.path)).toEqual(token);
  expect(statSync(join(folder.path, ".wrangler/dev-admin-token")).mode & 0o777).toBe(0o600);
  await using other = await temporaryFolder();
  expect(devToken(other.path).value).not.toBe(token.value);
});

it.each([".dev.vars", ".env"])("leaves a token in %s to wrangler", async (file) => {
  await using folder = await temporaryFolder();
  await folder.write(file, `OTHER=1\nWEIR_ADMIN_TOKEN=${OWN}\n`);
  expect(devToken(folder.path)).toEqual({ value: OWN, userFile: file, vars: {} });
});

it("uses a random token if the user's is blank", async () => {
  await using folder = await temporaryFolder();
  await folder.write(".dev.vars", "WEIR_ADMIN_TOKEN=\n");
  expect(devToken(folder.path).userFile).toBeUndefined();
});
