import { TrieRouter } from "hono/router/trie-router";
import type { KeyPart } from "../config/key.ts";
import { splitRoute } from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { LruCache } from "./lru-cache.ts";
import { canonicalPath } from "./path.ts";

type Params = Readonly<Record<string, string>>;

/** The path that matched a rule's routes, and the parameters in it. */
export interface PathMatch {
  /**
   * Undefined if several variants match, because the client chooses how they differ. A variant that an
   * app certainly uses has a match of its own.
   */
  readonly path: string | undefined;
  /** The parameters of that path, without the parameters that differ between matching variants. */
  readonly params: Params;
}

/** The rules whose routes match a path, before Weir compares hosts and methods. */
export interface RoutedPath {
  /**
   * The index of each selected rule, in ascending order, and the path that selected the rule. A rule
   * occurs more than once only if an app routes the request, and the rule's key differs between the
   * variants: see {@link CanonicalRequest.routed}.
   */
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

/** The values of a path that a rule's key reads. */
interface PathReads {
  readonly path: boolean;
  readonly params: readonly string[];
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
  /** What the keys read, by the rule's index. Undefined for rules that need no value of the path. */
  readonly #reads: readonly (PathReads | undefined)[];

  constructor(rules: readonly Rule[], caseSensitivePaths: boolean) {
    this.#reads = rules.map(pathReadsOf);
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

  #route({ path, variants, unstrippedVariants, routed = [] }: CanonicalRequest): RoutedPath {
    const { selected, excepted } = this.#select(variants, unstrippedVariants);
    const onlyPath = variants.length === 1 ? path : undefined;
    for (const index of this.#pathless) {
      selected.set(index, { path: onlyPath, params: NO_PARAMS, variant: path });
    }
    const sorted = [...selected].sort(([a], [b]) => a - b);
    const hasReader = routed.length > 0 && sorted.some(([index]) => this.#reads[index]);
    return { selected: hasReader ? this.#addRouted(sorted, variants, routed) : sorted, excepted };
  }

  /** Selects the rules by their routes. */
  #select(variants: readonly string[], unstrippedVariants: readonly string[]) {
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
    return { selected, excepted };
  }

  /**
   * Replaces the match of a rule by one match for each value that its key may have. A client must
   * not reach the handler of one key by a path that counts for another key, or for none.
   */
  #addRouted(
    sorted: readonly (readonly [index: number, match: PathMatch])[],
    variants: readonly string[],
    routed: readonly string[],
  ) {
    const isOther = (variant: string) => !routed.includes(variant);
    const others = variants.filter(isOther);
    const byOthers = this.#select(others, []).selected;
    const byRouted = routed.map((path) => ({ path, selected: this.#select([path], []).selected }));
    return sorted.flatMap(([index, match]): [number, PathMatch][] => {
      const reads = this.#reads[index];
      if (!reads) return [[index, match]];
      const matches: PathMatch[] = [];
      const add = (each: PathMatch | undefined) => {
        if (each && !matches.some((known) => readsSame(reads, known, each))) matches.push(each);
      };
      const isPathless = this.#pathless.includes(index);
      for (const { path, selected } of byRouted) {
        add(isPathless ? { path, params: NO_PARAMS } : selected.get(index));
      }
      const other = isPathless ? others.length > 0 && match : byOthers.get(index);
      // If another variant may have another value, the request counts like one that no app routes.
      if (other && !matches.some((known) => readsSame(reads, known, other))) add(match);
      return matches.map((each) => [index, each]);
    });
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

function pathReadsOf({ key, tiers }: Rule): PathReads | undefined {
  const isOfPath = ({ kind }: KeyPart) => kind === "path" || kind === "param";
  const ofKey = key.flat().filter(isOfPath);
  if (ofKey.length === 0 && !tiers?.by.flat().some(isOfPath)) return undefined;
  return {
    path: ofKey.some(({ kind }) => kind === "path"),
    params: ofKey.flatMap((part) => (part.kind === "param" ? [part.name] : [])),
  };
}

/** Whether a rule's key reads the same values from two matches. */
function readsSame({ path, params }: PathReads, one: PathMatch, other: PathMatch): boolean {
  return (
    (!path || one.path === other.path) &&
    params.every((name) => one.params[name] === other.params[name])
  );
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
    // The pattern becomes a group, because Hono would anchor `a|b` as `^a|b$`.
    return segment.replace(/\{(.+)\}/, (_, pattern: string) => {
      return `{(?:${caseSensitivePaths ? pattern : withLowerCase(pattern)})}`;
    });
  });
  return `/${segments
    .map((segment) => segment.replace(/^\//, ""))
    .filter(Boolean)
    .join("/")}`;
}

/** An escape, the start of a named group, a class, or an upper-case letter. */
const PATTERN_PART =
  /\\(?:[cx]..?|u.{4}|k<[^>]*>|p\{[^}]*\}|.)|\(\?<(?![=!])[^>]*>|\[(?:\\.|[^\]\\])*\]|\p{Lu}/gsu;

/** An escape, a range or a character of a class. */
const CLASS_PART = /\\.|([^\\])-([^\\\]])|./gsu;

/**
 * Lets a pattern ignore case for paths that are folded to lower case: its upper-case letters match lower-case
 * ones. The modifier `(?i:…)` would do the same, but Node has it only since version 23.
 */
export function withLowerCase(pattern: string): string {
  return pattern.replace(PATTERN_PART, (part) => {
    if (part.startsWith("[")) return withLowerCaseClass(part);
    return part.startsWith("\\") || part.startsWith("(") ? part : part.toLowerCase();
  });
}

/** Adds the lower-case letters of the upper-case ones that a class contains. */
function withLowerCaseClass(text: string): string {
  const added = [...text.slice(1, -1).matchAll(CLASS_PART)].map(([part, first, last]) => {
    if (!first || !last) return /^\p{Lu}$/u.test(part) ? part.toLowerCase() : "";
    const [from, to] = [first < "A" ? "A" : first, last > "Z" ? "Z" : last];
    return from <= to ? `${from}-${to}`.toLowerCase() : "";
  });
  const letters = added.join("");
  if (!letters) return text;
  return text.startsWith("[^") ? `(?:(?![${letters}])${text})` : `(?:[${letters}]|${text})`;
}
