import { TrieRouter } from "hono/router/trie-router";
import { type Conditions, splitRoute } from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import { canonicalPath } from "./canonical-path.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { LruCache } from "./lru-cache.ts";

/** A rule that a request falls under, and the readings of its path by which it does. */
export interface RuleMatch {
  readonly rule: Rule;
  /** Undefined when readings differ: the client chose a path that has several. */
  readonly path: string | undefined;
  /** The parameters of that path, less those that differ between readings. */
  readonly params: Params;
}

type Params = Readonly<Record<string, string>>;

export type Matcher = (request: CanonicalRequest) => RuleMatch[];

/** What a route leads to: a rule that it selects, or one that it excepts. */
interface Target {
  readonly index: number;
  readonly excepts: boolean;
}

/** What the routes say of a path, before hosts and methods are looked at. */
interface Routed {
  /** The rules by their indices, in their order, and the reading by which each is selected. */
  readonly selected: readonly (readonly [index: number, by: Omit<RuleMatch, "rule">])[];
  readonly excepted: ReadonlySet<number>;
}

interface Selected extends Omit<RuleMatch, "rule"> {
  /** The last reading that the rule was found by. */
  readonly by: string;
}

const NO_PARAMS = Object.freeze({});

/**
 * Paths whose routes are remembered, and how long one may be and how many rules it may select: at most
 * about 1 MB. A flood of new paths costs what it would cost without.
 */
const REMEMBERED_PATHS = 512;
const LONGEST_REMEMBERED = 256;
const MOST_REMEMBERED = 16;

/**
 * Prepares rules for matching. All paths stand in one of Hono's tries, so that a request costs
 * about the same however many rules there are.
 *
 * @returns a function that gives every rule a request falls under, in the order of the rules
 */
export function createMatcher(rules: readonly Rule[], caseSensitivePaths: boolean): Matcher {
  const router = new TrieRouter<Target>();
  const pathless: number[] = [];
  for (const [index, { match }] of rules.entries()) {
    if (!match.paths) pathless.push(index);
    for (const path of match.paths ?? []) {
      router.add("ALL", canonicalRoute(path, caseSensitivePaths), { index, excepts: false });
    }
    for (const path of match.except?.paths ?? []) {
      router.add("ALL", canonicalRoute(path, caseSensitivePaths), { index, excepts: true });
    }
  }

  function targetsOf(path: string): [Target, Record<string, string>][] {
    const [targets] = router.match("ALL", path) as [[Target, Record<string, string>][]];
    return targets;
  }

  function routed({ path: canonical, variants: readings, literal }: CanonicalRequest): Routed {
    const selected = new Map<number, Selected>();
    const select = (index: number, path: string, params: Params) => {
      const before = selected.get(index);
      if (!before) selected.set(index, { path, params, by: path });
      // Of two routes of one rule, the first one holds, whatever the client sends.
      else if (before.by !== path) {
        selected.set(index, { ...common(before, path, params), by: path });
      }
    };
    const excepted = new Set<number>();
    for (const path of readings) {
      for (const [{ index, excepts }, params] of targetsOf(path)) {
        if (excepts) excepted.add(index);
        else select(index, path, params);
      }
    }
    // A client may write any parameters there: what they add selects rules that nothing else selects.
    const known = new Set(selected.keys());
    for (const path of literal) {
      for (const [{ index, excepts }, params] of targetsOf(path)) {
        if (!excepts && !known.has(index)) select(index, path, params);
      }
    }
    const path = readings.length === 1 ? canonical : undefined;
    for (const index of pathless) selected.set(index, { path, params: NO_PARAMS, by: canonical });
    return { selected: [...selected].sort(([a], [b]) => a - b), excepted };
  }

  const recent = new LruCache<Routed>(REMEMBERED_PATHS);

  /** Only for plain paths, which have a single reading, is the path alone enough to remember by. */
  function recall(request: CanonicalRequest): Routed {
    const { path, isUnambiguous: plain } = request;
    const known = plain ? recent.get(path) : undefined;
    if (known) return known;
    const found = routed(request);
    const isSmall = path.length <= LONGEST_REMEMBERED && found.selected.length <= MOST_REMEMBERED;
    if (plain && isSmall) recent.set(path, found);
    return found;
  }

  return function matchRules(request) {
    const { selected, excepted } = recall(request);
    const matches: RuleMatch[] = [];
    for (const [index, { path, params }] of selected) {
      const rule = rules[index] as Rule;
      if (!selects(rule, request)) continue;
      if (rule.match.except && isExcepted(rule.match.except, request, excepted.has(index)))
        continue;
      matches.push({ rule, path, params });
    }
    return matches;
  };
}

/** What two readings of a path have in common. */
function common({ path, params }: Omit<RuleMatch, "rule">, other: string, others: Params) {
  const same = Object.entries(params).filter(([name, value]) => others[name] === value);
  return { path: path === other ? path : undefined, params: Object.fromEntries(same) };
}

function selects({ match }: Rule, request: CanonicalRequest): boolean {
  if (request.preflight && !match.methods?.includes("OPTIONS")) return false;
  return hostHolds(match, request) && methodHolds(match, request);
}

function isExcepted(except: Conditions, request: CanonicalRequest, onPath: boolean): boolean {
  // To the origin a path that is not plain may be another: excepting it would be a way around.
  const pathHolds = !except.paths || (onPath && request.isUnambiguous);
  return pathHolds && hostHolds(except, request) && methodHolds(except, request);
}

function hostHolds({ hosts }: Conditions, { host }: CanonicalRequest): boolean {
  if (!hosts) return true;
  return hosts.some((pattern) =>
    pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern,
  );
}

function methodHolds({ methods }: Conditions, request: CanonicalRequest): boolean {
  return !methods || methods.includes(request.method) || methods.includes(request.sentMethod);
}

/** A route in the form that paths are brought into. Parameters and `*` stay as they are. */
function canonicalRoute(route: string, caseSensitivePaths: boolean): string {
  const segments = splitRoute(route).map((segment) => {
    if (segment === "*") return segment;
    if (!segment.startsWith(":")) return canonicalPath(`/${segment}`, caseSensitivePaths).path;
    // In a group of its own, since Hono anchors the text as it stands: `^a|b$`. The path that the
    // pattern will meet may be folded to lower case.
    return segment.replace(/\{(.+)\}/, caseSensitivePaths ? "{(?:$1)}" : "{(?i:$1)}");
  });
  return `/${segments
    .map((segment) => segment.replace(/^\//, ""))
    .filter(Boolean)
    .join("/")}`;
}
