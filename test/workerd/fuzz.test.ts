import { expect, it } from "vitest";
import { configTarget } from "../../fuzz/targets/config.ts";
import { cookiesTarget } from "../../fuzz/targets/cookies.ts";
import { costsTarget } from "../../fuzz/targets/costs.ts";
import { fieldsTarget } from "../../fuzz/targets/fields.ts";
import { keysTarget } from "../../fuzz/targets/keys.ts";
import { pathsTarget } from "../../fuzz/targets/paths.ts";
import { problemTarget } from "../../fuzz/targets/problem.ts";
import { replyTarget } from "../../fuzz/targets/reply.ts";
import { sentTarget } from "../../fuzz/targets/sent.ts";
import { spellingsTarget } from "../../fuzz/targets/spellings.ts";
import { tokensTarget } from "../../fuzz/targets/tokens.ts";
import { runs, SEED } from "../suite/runs.ts";

// A short run of `npm run fuzz` in workerd.
const RUN = { cases: runs(3000), seed: SEED };

const TARGETS = [
  configTarget,
  pathsTarget,
  spellingsTarget,
  sentTarget,
  keysTarget,
  cookiesTarget,
  fieldsTarget,
  problemTarget,
  replyTarget,
  tokensTarget,
  costsTarget,
];

it.each(TARGETS)("$name, with arbitrary input: $about", async ({ check }) => {
  const { cases, finding } = await check(RUN);
  expect(finding).toBeUndefined();
  expect(cases).toBe(RUN.cases);
});
