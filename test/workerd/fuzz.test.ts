import { expect, it } from "vitest";
import { configTarget } from "../../fuzz/targets/config.ts";
import { fieldsTarget } from "../../fuzz/targets/fields.ts";
import { keysTarget } from "../../fuzz/targets/keys.ts";
import { pathsTarget } from "../../fuzz/targets/paths.ts";
import { problemTarget } from "../../fuzz/targets/problem.ts";
import { replyTarget } from "../../fuzz/targets/reply.ts";
import { spellingsTarget } from "../../fuzz/targets/spellings.ts";

// A short run of `npm run fuzz` in workerd, with the same cases each time.
const EFFORT = { cases: 3000, seed: 20_260_101 };

const TARGETS = [
  configTarget,
  pathsTarget,
  spellingsTarget,
  keysTarget,
  fieldsTarget,
  problemTarget,
  replyTarget,
];

it.each(TARGETS)(
  "against arbitrary input: $about",
  async ({ check }) => {
    const { cases, finding } = await check(EFFORT);
    expect(finding).toBeUndefined();
    expect(cases).toBe(EFFORT.cases);
  },
  30_000,
);
