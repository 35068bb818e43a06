/** Returns a copy of a report in which each text, at any depth, is replaced. */
export function withTexts<T>(report: T, replace: (text: string) => string): T {
  return changed(report, (value) => (typeof value === "string" ? replace(value) : value)) as T;
}

/** Returns a copy of a report in which each number, at any depth, is replaced. */
export function withNumbers<T>(report: T, replace: (value: number) => number): T {
  return changed(report, (value) => (typeof value === "number" ? replace(value) : value)) as T;
}

/** Replaces every text that is no time by one that breaks badly written pages. */
export function hostile<T>(report: T): T {
  return withTexts(report, (text) => (isTime(text) ? text : `${HOSTILE}${text}`));
}

/** Returns a copy of a report with short lists of rules, clients and windows, for tests that read each element. */
export function withShortLists<T>(report: T, length: number): T {
  return shortened(report, length) as T;
}

function shortened(value: unknown, length: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (!Array.isArray(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, shortened(each, length)]),
    );
  }
  // The steps of timelines stay: they are numbers.
  if (typeof value[0] !== "object") return value;
  return value.slice(0, length).map((each) => shortened(each, length));
}

/** An attack on the page, a text from right to left, and a word that is wider than a screen. */
const HOSTILE = `"><script>document.title="x"</script><img src=x onerror=alert(1)>'&lt; \u202eתוכן\u202c ${"W".repeat(120)}`;

function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT/.test(text);
}

function changed(value: unknown, replace: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => changed(each, replace));
  if (typeof value !== "object" || value === null) return replace(value);
  const entries = Object.entries(value).map(([name, each]) => [name, changed(each, replace)]);
  return Object.fromEntries(entries);
}
