import { TrieRouter } from "hono/router/trie-router";
import { splitRoute } from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import { canonicalPath } from "./canonical-path.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { LruCache } from "./lru-cache.ts";

type Params = Readonly<Record<string, string>>;

/** The path by which a rule's routes match a request. */
export interface PathMatch {
  /** Undefined when several variants match, because the client chose how they differ. */
  readonly path: string | undefined;
  /** The parameters of that path, without those that differ between variants. */
  readonly params: Params;
}

/** The rules whose routes match a path, before hosts and methods are compared. */
export interface RoutedPath {
  /** The indices of the selected rules, in their order, and the path by which each is selected. */
  readonly selected: readonly (readonly [index: number, match: PathMatch])[];
  /** The indices of the rules whose exceptions match. */
  readonly excepted: ReadonlySet<number>;
}

/** The rule of a route. The route selects the rule, or is one of its exceptions. */
interface Target {
  readonly index: number;
  readonly isException: boolean;
}

/** A path match, and the last variant that it was found by. */
interface VariantMatch extends PathMatch {
  readonly variant: string;
}

const NO_PARAMS = Object.freeze({});

/**
 * How many paths have their rules cached, how long such a path may be, and how many rules it may select:
 * about 1 MB at most. A path that is not cached costs no more than without a cache.
 */
const CACHED_PATHS = 512;
const MAX_CACHED_LENGTH = 256;
const MAX_CACHED_RULES = 16;

/**
 * The routes of all rules, in one trie of Hono. So the time for a request hardly depends on the number
 * of rules.
 */
export class RouteTable {
  readonly #router = new TrieRouter<Target>();
  /** The rules without paths, which match every path. */
  readonly #pathless: number[] = [];
  readonly #cache = new LruCache<RoutedPath>(CACHED_PATHS);

  constructor(rules: readonly Rule[], caseSensitivePaths: boolean) {
    for (const [index, { match }] of rules.entries()) {
      if (!match.paths) this.#pathless.push(index);
      for (const path of match.paths ?? []) {
        const route = canonicalRoute(path, caseSensitivePaths);
        this.#router.add("ALL", route, { index, isException: false });
      }
      for (const path of match.except?.paths ?? []) {
        const route = canonicalRoute(path, caseSensitivePaths);
        this.#router.add("ALL", route, { index, isException: true });
      }
    }
  }

  /** Finds the rules for a request's path. Only unambiguous paths, which have one variant, are cached. */
  find(request: CanonicalRequest): RoutedPath {
    const { path, isUnambiguous } = request;
    const cached = isUnambiguous ? this.#cache.get(path) : undefined;
    if (cached) return cached;
    const routed = this.#route(request);
    const isSmall = path.length <= MAX_CACHED_LENGTH && routed.selected.length <= MAX_CACHED_RULES;
    if (isUnambiguous && isSmall) this.#cache.set(path, routed);
    return routed;
  }

  #route({ path, variants, unstrippedVariants }: CanonicalRequest): RoutedPath {
    const selected = new Map<number, VariantMatch>();
    const excepted = new Set<number>();
    for (const variant of variants) {
      for (const [{ index, isException }, params] of this.#targetsOf(variant)) {
        if (isException) excepted.add(index);
        else select(selected, index, variant, params);
      }
    }
    // Clients may write any parameters into these variants, so they select only rules that no other
    // variant selects.
    const alreadySelected = new Set(selected.keys());
    for (const variant of unstrippedVariants) {
      for (const [{ index, isException }, params] of this.#targetsOf(variant)) {
        if (!isException && !alreadySelected.has(index)) select(selected, index, variant, params);
      }
    }
    const onlyPath = variants.length === 1 ? path : undefined;
    for (const index of this.#pathless) {
      selected.set(index, { path: onlyPath, params: NO_PARAMS, variant: path });
    }
    return { selected: [...selected].sort(([a], [b]) => a - b), excepted };
  }

  #targetsOf(path: string): [Target, Record<string, string>][] {
    const [targets] = this.#router.match("ALL", path) as [[Target, Record<string, string>][]];
    return targets;
  }
}

function select(
  selected: Map<number, VariantMatch>,
  index: number,
  variant: string,
  params: Params,
): void {
  const before = selected.get(index);
  if (!before) selected.set(index, { path: variant, params, variant });
  // If two routes of a rule match one variant, the first route counts.
  else if (before.variant !== variant) {
    selected.set(index, { ...intersect(before, variant, params), variant });
  }
}

/** The path and the parameters that two variants have in common. */
function intersect({ path, params }: PathMatch, otherPath: string, otherParams: Params): PathMatch {
  const equal = Object.entries(params).filter(([name, value]) => otherParams[name] === value);
  return { path: path === otherPath ? path : undefined, params: Object.fromEntries(equal) };
}

/** Brings a route into the form of canonical paths. Parameters and `*` stay as they are. */
function canonicalRoute(route: string, caseSensitivePaths: boolean): string {
  const segments = splitRoute(route).map((segment) => {
    if (segment === "*") return segment;
    if (!segment.startsWith(":")) return canonicalPath(`/${segment}`, caseSensitivePaths).path;
    // The pattern gets a group, because Hono anchors the text as it is: `^a|b$`. It ignores case
    // where paths are folded to lower case.
    return segment.replace(/\{(.+)\}/, caseSensitivePaths ? "{(?:$1)}" : "{(?i:$1)}");
  });
  return `/${segments
    .map((segment) => segment.replace(/^\//, ""))
    .filter(Boolean)
    .join("/")}`;
}
