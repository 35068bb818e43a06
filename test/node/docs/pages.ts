import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** Every page of documentation, by its path from the repository's root. */
export const PAGES = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "SKILL.md",
  ...globSync(["docs/*.md", "docs/guides/*.md", "bench/README.md", "test/*/README.md"]).sort(),
];

export interface CodeBlock {
  /** The word after the opening backquotes, such as `ts`. */
  readonly language: string;
  /** The code. If the block is part of a list, the list's indentation is removed. */
  readonly code: string;
  /** The anchor of the heading of level 2 above the block; empty if there is none. */
  readonly section: string;
}

export interface Page {
  readonly path: string;
  readonly lines: readonly string[];
  /** The lines outside code blocks. */
  readonly prose: readonly string[];
  readonly blocks: readonly CodeBlock[];
}

export function readPage(path: string): Page {
  const text = readFileSync(path, "utf8");
  const blocks = [...text.matchAll(/^( *)```(\w*)\n(.*?)^ *```$/gms)].map(
    ({ index, 1: indent = "", 2: language = "", 3: code = "" }) => ({
      language,
      code: code.replace(new RegExp(`^${indent}`, "gm"), ""),
      section: slugOf(/.*^## ([^\n]*)/ms.exec(text.slice(0, index))?.[1] ?? ""),
    }),
  );
  const prose = text.replace(/^ *```\w*\n.*?^ *```$/gms, "").split("\n");
  return { path, lines: text.replace(/\n$/, "").split("\n"), prose, blocks };
}

/** Returns the targets of a page's links and the files of its pictures, except those on the web. */
export function linksOf({ prose }: Page): string[] {
  const links = prose.join("\n").matchAll(/(?:\]\(|\s(?:src|srcset)=")([^)"\s]+)[)"]/g);
  return [...links].map(([, target = ""]) => target).filter((target) => !target.includes("://"));
}

/** Returns the inline code of a page. */
export function inlineCodeOf({ prose }: Page): string[] {
  const text = prose.join("\n").replace(/\s*\n\s*/g, " ");
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}

/** Describes the fault of a link. Returns undefined if the link's file and heading exist. */
export function linkFault(page: string, link: string): string | undefined {
  const [file = "", anchor] = link.split("#");
  const path = file === "" ? page : normalize(join(dirname(page), file));
  if (!existsSync(path)) return `${link}: there is no ${path}`;
  if (anchor === undefined) return undefined;
  if (statSync(path).isDirectory()) return `${link}: a folder has no headings`;
  return anchorsOf(readPage(path)).includes(anchor) ? undefined : `${link}: no such heading`;
}

/** Returns the anchors that GitHub gives to a page's headings. */
function anchorsOf({ prose }: Page): string[] {
  const seen = new Map<string, number>();
  return prose
    .flatMap((line) => /^#+ (.*)$/.exec(line)?.[1] ?? [])
    .map((heading) => {
      const slug = slugOf(heading);
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    });
}

function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}
