import { TrieRouter } from "hono/router/trie-router";
import { splitRoute } from "../config/route.ts";
import type { Rule } from "../config/rule.ts";
import { canonicalPath } from "./canonical-path.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { LruCache } from "./lru-cache.ts";

type Params = Readonly<Record<string, string>>;

/** The path that matched a rule's routes, and the parameters in it. */
export interface PathMatch {
  /** Undefined if several variants match, because the client chooses how they differ. */
  readonly path: string | undefined;
  /** The parameters of that path, without the parameters that differ between matching variants. */
  readonly params: Params;
}

/** The rules whose routes match a path, before Weir compares hosts and methods. */
export interface RoutedPath {
  /** The index of each selected rule, in ascending order, and the path that selected the rule. */
  readonly selected: readonly (readonly [index: number, match: PathMatch])[];
  /** The indices of the rules whose exceptions match the path. */
  readonly excepted: ReadonlySet<number>;
}

/**
 * The rule that a route belongs to. The route either selects the rule or is one of its exceptions.
 */
interface Target {
  readonly index: number;
  readonly isException: boolean;
}

/** The path match of a rule, and the variant of the path that matched the rule last. */
interface VariantMatch extends PathMatch {
  readonly variant: string;
}

const NO_PARAMS = Object.freeze({});

/**
 * The cache has at most `CACHED_PATHS` paths with their rules. It does not store paths of more than
 * `MAX_CACHED_LENGTH` characters, or paths that select more than `MAX_CACHED_RULES` rules. With
 * these maximums, the cache takes at most approximately 1 MB. A cache miss takes hardly any time.
 */
const CACHED_PATHS = 512;
const MAX_CACHED_LENGTH = 256;
const MAX_CACHED_RULES = 16;

/**
 * The routes of all rules, in one trie router of Hono. So the time for a request hardly depends on
 * the number of rules.
 */
export class RouteTable {
  readonly #router = new TrieRouter<Target>();
  /** The indices of the rules without paths, which match every path. */
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

  /**
   * Finds the rules for a request's path. Caches only unambiguous paths, which have one variant.
   */
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
    // These variants keep `;parameters`, in which clients can write any text. So these variants
    // select only rules that no variant in `variants` selects.
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
  // If two routes of a rule match the same variant, the parameters of the first route are used.
  else if (before.variant !== variant) {
    selected.set(index, { ...intersect(before, variant, params), variant });
  }
}

/** Returns the path and the parameters that two variants have in common. */
function intersect({ path, params }: PathMatch, otherPath: string, otherParams: Params): PathMatch {
  const equal = Object.entries(params).filter(([name, value]) => otherParams[name] === value);
  return { path: path === otherPath ? path : undefined, params: Object.fromEntries(equal) };
}

/** Brings a route into the form of canonical paths. Parameters and `*` stay unchanged. */
function canonicalRoute(route: string, caseSensitivePaths: boolean): string {
  const segments = splitRoute(route).map((segment) => {
    if (segment === "*") return segment;
    if (!segment.startsWith(":")) return canonicalPath(`/${segment}`, caseSensitivePaths).path;
    // The pattern becomes a group, because Hono would anchor `a|b` as `^a|b$`. The group ignores
    // case if paths are folded to lower case.
    return segment.replace(/\{(.+)\}/, caseSensitivePaths ? "{(?:$1)}" : "{(?i:$1)}");
  });
  return `/${segments
    .map((segment) => segment.replace(/^\//, ""))
    .filter(Boolean)
    .join("/")}`;
}
