import { isDeepStrictEqual } from "node:util";
import { Failure } from "../failure.ts";
import { CURRENT, HONO, isAtLeast, NODE_20, toolchainFor } from "../versions.ts";
import type { Edit } from "./edit.ts";
import { type AppFile, parseJson } from "./hono-app.ts";
import { setJson } from "./json-edit.ts";

/** The oldest version of hono in {@link HONO}. */
const OLDEST_HONO = HONO.slice(1);

/** The first version of wrangler that refuses Node 20. */
const WRANGLER_WITHOUT_NODE_20 = "4.87.0";

/**
 * Adds the package edge-weir to an app's package.json, and changes the ranges of two packages if
 * they cannot work: hono, if Weir needs a newer version, and wrangler, if it refuses this Node. Each
 * new text is parsed, and is used only if it has exactly the added ranges.
 *
 * @param edgeWeir the text by which package.json names the package
 * @throws {Failure} if the app needs a version of hono that Weir does not support
 */
export function editManifest(file: AppFile, edgeWeir: string, nodeVersion: string): Edit {
  const changes: string[] = [];
  const byHand: string[] = [];
  let { text } = file;
  const manifest = parseJson(text) as Record<string, Record<string, string> | undefined>;
  const expected = structuredClone(manifest);
  const set = (kind: string, name: string, range: string, reason: string) => {
    const before = manifest[kind]?.[name];
    const edited = setJson(text, [kind, name], range);
    expected[kind] = { ...expected[kind], [name]: range };
    if (!isDeepStrictEqual(parseJson(edited), expected)) {
      byHand.push(
        `${file.path}: set ${JSON.stringify(name)} in ${kind} to ${JSON.stringify(range)}`,
      );
      return;
    }
    text = edited;
    changes.push(`${name}: ${before === undefined ? range : `${before} → ${range}`}${reason}`);
  };
  const { dependencies = {}, devDependencies = {} } = manifest;
  if (!("edge-weir" in { ...dependencies, ...devDependencies })) {
    set("dependencies", "edge-weir", edgeWeir, "");
  }
  for (const [kind, ranges] of [
    ["dependencies", dependencies],
    ["devDependencies", devDependencies],
  ] as const) {
    if (ranges.hono !== undefined && isOldHono(ranges.hono)) {
      set(kind, "hono", HONO, `, because Weir needs hono ${OLDEST_HONO}`);
    }
    if (ranges.wrangler !== undefined && refusesNode(ranges.wrangler, nodeVersion)) {
      const { wrangler = "" } = NODE_20.devDependencies;
      set(
        kind,
        "wrangler",
        wrangler,
        `, because newer versions need Node 22, and this is Node ${nodeVersion}`,
      );
    }
  }
  return { text, changes, byHand, advice: [] };
}

/**
 * @param range such as `^4.6.0`. Tags and other notations are left alone
 * @throws {Failure} if the app insists on an old version
 */
function isOldHono(range: string): boolean {
  const [, sign, version] = /^([\^~]?)(\d+\.\d+\.\d+)$/.exec(range) ?? [];
  if (version === undefined || isAtLeast(version, OLDEST_HONO)) return false;
  if (sign === "^" && version.startsWith("4.")) return true;
  throw new Failure(
    `package.json asks for hono ${range}, but Weir needs hono ${OLDEST_HONO} or newer: run npm install hono@latest. Nothing was written.`,
  );
}

/** Whether the newest version in a range of wrangler refuses this Node. */
function refusesNode(range: string, nodeVersion: string): boolean {
  if (toolchainFor(nodeVersion) === CURRENT) return false;
  const [, sign, version] = /^([\^~]|>=)?(\d+\.\d+\.\d+)$/.exec(range) ?? [];
  if (version === undefined) return /^(latest|\*|\^?4(\.x)?)$/.test(range);
  return sign === "^" || sign === ">=" || isAtLeast(version, WRANGLER_WITHOUT_NODE_20);
}
