import type { Tone } from "../tone.ts";

const TONES: readonly Tone[] = [
  "allowed",
  "limited",
  "shadow",
  "undecided",
  "refused",
  "unmatched",
  "memory",
];

type ByTone<T> = Readonly<Record<Tone, T>>;

/** The colours of the style sheet, for canvases. */
export interface Colours {
  readonly text: string;
  readonly line: string;
  /** Behind the bucket that has not ended. */
  readonly mark: string;
  readonly font: string;
  readonly tones: ByTone<string>;
  /** The fillings of areas. Some have stripes, so that they differ without colours. */
  readonly fills: ByTone<string | CanvasPattern>;
}

export function readColours(element: HTMLElement): Colours {
  const probe = document.createElement("span");
  element.append(probe);
  const resolve = (colour: string) => {
    probe.style.color = colour;
    return getComputedStyle(probe).color;
  };
  const read = (name: string) => resolve(`var(--${name})`);
  const paper = read("card");
  const byTone = <T>(of: (tone: Tone) => T) =>
    Object.fromEntries(TONES.map((tone) => [tone, of(tone)])) as ByTone<T>;
  const tones = byTone(read);
  const striped = (tone: Tone) => tone === "limited" || tone === "undecided" || tone === "shadow";
  const pale = (tone: Tone) => resolve(`color-mix(in srgb, var(--${tone}) 50%, var(--card))`);
  const fills = byTone((tone) => (striped(tone) ? stripes(tones[tone], paper) : pale(tone)));
  const { fontFamily } = getComputedStyle(element);
  const colours = {
    text: read("muted"),
    line: read("line"),
    mark: read("line"),
    font: `11px ${fontFamily}`,
    tones,
    fills,
  };
  probe.remove();
  return colours;
}

/** Returns diagonal stripes. */
function stripes(colour: string, paper: string): string | CanvasPattern {
  const size = 6 * devicePixelRatio;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  if (!context) return colour;
  context.fillStyle = paper;
  context.fillRect(0, 0, size, size);
  context.globalAlpha = 0.45;
  context.fillStyle = colour;
  context.fillRect(0, 0, size, size);
  context.globalAlpha = 1;
  context.strokeStyle = colour;
  context.lineWidth = size / 3;
  context.beginPath();
  for (const offset of [-size, 0, size]) {
    context.moveTo(offset - 1, size + 1);
    context.lineTo(offset + size + 1, -1);
  }
  context.stroke();
  return context.createPattern(canvas, "repeat") ?? colour;
}
