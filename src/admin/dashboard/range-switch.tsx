import { RANGES, type Range } from "./ranges.ts";

/** Links to the same page with other times. */
export function RangeSwitch({ path, range }: { path: string; range: Range }) {
  return (
    <nav class="switch" aria-label="Time">
      {RANGES.map(({ id, label }) => (
        <a href={`${path}?range=${id}`} aria-current={id === range.id ? "true" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}
