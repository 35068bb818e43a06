// Prints the test files that use Redis, each on a line of its own. `.ci/run` repeats these tests
// without redis-server. Usage: node scripts/tests-on-redis.ts

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Matches the ways to get a Redis: the Redis of the whole run, a new one, or `npm run dev:redis`. */
const STARTS_REDIS = /inject\("redis"\)|\bstart(?:Test)?Redis\b|--redis\b/;
const IMPORT = /(?:from|import\() ?"(\.{1,2}\/[^"]+\.ts)"/g;

const usesRedis = new Map<string, boolean>();

/** Returns whether a module, or any module of the tests that it imports, uses Redis. */
function reachesRedis(file: string): boolean {
  const cached = usesRedis.get(file);
  if (cached !== undefined) return cached;
  // A cycle of imports ends here.
  usesRedis.set(file, false);
  const source = readFileSync(file, "utf8");
  const imported = [...source.matchAll(IMPORT)].map(([, path]) => join(dirname(file), path ?? ""));
  const result =
    STARTS_REDIS.test(source) ||
    // Tests also contain configurations as text, which import files that do not exist.
    imported.some(
      (path) => /^(?:test|fuzz)\//.test(path) && existsSync(path) && reachesRedis(path),
    );
  usesRedis.set(file, result);
  return result;
}

const tests = readdirSync("test", { recursive: true, encoding: "utf8" })
  .map((path) => join("test", path))
  .filter((path) => path.endsWith(".test.ts") && reachesRedis(path))
  .sort();
console.log(tests.join("\n"));
