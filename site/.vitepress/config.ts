import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { defineConfig, type MarkdownRenderer } from "vitepress";
import { llmsText } from "./llms.ts";

// The site is made of the repository's own pages. Their list, their titles and their links are read from the pages.

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const { description, repository } = JSON.parse(read("package.json"));
const repositoryUrl: string = repository.url.replace(/^git\+|\.git$/g, "");
const folders = readdirSync(root, { withFileTypes: true }).filter((each) => each.isDirectory());
/** Folders whose Markdown files are not part of the site. */
const otherFolders = folders.map(({ name }) => name).filter((name) => name !== "docs");
const icon = encodeURIComponent(read("src/admin/dashboard/client/icon.svg"));

function isPage(path: string): boolean {
  return path.endsWith(".md") && (!path.includes("/") || path.startsWith("docs/"));
}

/** Returns the file of the site for a page of the repository. */
function sitePath(path: string): string {
  return path.replace(/README\.md$/, "index.md");
}

/** Returns a group for each heading of docs/README.md, with the pages that this heading links to first. */
function sidebar() {
  const seen = new Set<string>();
  const [, ...sections] = read("docs/README.md").split(/^## /m);
  const groups = sections.map((section) => ({
    text: section.slice(0, section.indexOf("\n")),
    items: [...section.matchAll(/\]\(([^)#]+\.md)/g)].flatMap(([, link = ""]) => {
      const path = posix.join("docs", link);
      if (seen.has(path)) return [];
      seen.add(path);
      return [{ text: titleOf(path), link: `/${sitePath(path)}` }];
    }),
  }));
  return groups.filter(({ items }) => items.length > 0);
}

function titleOf(path: string): string {
  return /^# (.+)$/m.exec(read(path))?.[1]?.replaceAll("`", "") ?? path;
}

/** Lets links to pages lead to the site, and links to other files to the repository. */
function resolveLinks(md: MarkdownRenderer): void {
  md.core.ruler.push("weir-links", ({ tokens, env }) => {
    const page = relative(root, env.realPath ?? env.path);
    for (const token of tokens) {
      // Vite looks for a picture without `./` among the packages.
      if (token.type === "html_block") {
        token.content = token.content.replace(/(?<=\s(?:src|srcset)=")(?=\w+\/)/g, "./");
      }
    }
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      // The site loads nothing from other hosts, so the text of such a picture stands for it.
      if (token.type === "image" && /^https:/.test(token.attrGet("src") ?? "")) token.type = "text";
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      if (href && !/^(?:#|[a-z]+:)/.test(href)) token.attrSet("href", resolveLink(page, href));
    }
  });
}

/** Lets indented code look and scroll like code between fences, and makes cells of heads without a text no heads. */
function mendBlocks(md: MarkdownRenderer): void {
  md.core.ruler.push("weir-blocks", ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      if (token.type === "code_block") token.type = "fence";
      const isHead = token.type === "th_open" || token.type === "th_close";
      const content = tokens[token.type === "th_open" ? index + 1 : index - 1]?.content;
      if (isHead && content === "") token.tag = "td";
    }
  });
}

/** Begins the first page by the first screen in place of its introduction, and puts its first code into the playground. */
function addFirstScreen(md: MarkdownRenderer): void {
  md.core.ruler.before("normalize", "weir-first-screen", (state) => {
    if (relative(root, state.env.realPath ?? state.env.path) !== "README.md") return;
    const start = state.src.indexOf("```ts");
    const end = state.src.indexOf("```\n", start) + "```\n".length;
    const playground = `<Playground>\n\n${state.src.slice(start, end)}\n</Playground>`;
    // VitePress puts no landmark around the content of this layout.
    state.src = `<main>\n\n${read("site/first-screen.md")}${playground}\n${state.src.slice(end)}\n</main>`;
  });
}

/** @throws if the link's file does not exist */
function resolveLink(page: string, href: string): string {
  const [file = "", anchor] = href.split("#");
  const path = posix.join(dirname(page), file);
  if (!existsSync(join(root, path))) throw new Error(`${page}: there is no ${path}`);
  const hash = anchor === undefined ? "" : `#${anchor}`;
  if (isPage(path)) return `/${sitePath(path)}${hash}`;
  const kind = statSync(join(root, path)).isDirectory() ? "tree" : "blob";
  return `${repositoryUrl}/${kind}/main/${path}${hash}`;
}

/** Returns the anchor that GitHub gives to a heading, because the pages link to these anchors. */
function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

export default defineConfig({
  title: "Weir",
  description,
  head: [["link", { rel: "icon", href: `data:image/svg+xml,${icon}` }]],
  srcDir: root,
  srcExclude: otherFolders.map((name) => `${name}/**`),
  outDir: join(root, "dist/site"),
  cacheDir: join(root, "node_modules/.cache/vitepress"),
  rewrites: sitePath,
  cleanUrls: true,
  transformPageData: ({ relativePath }) =>
    relativePath === "index.md"
      ? { frontmatter: { layout: "home" }, titleTemplate: "A rate limiter for Cloudflare's edge" }
      : undefined,
  buildEnd: ({ outDir }) => {
    const text = llmsText(read("docs/README.md"), description, `${repositoryUrl}/raw/main`);
    writeFileSync(join(outDir, "llms.txt"), text);
  },
  markdown: {
    anchor: { slugify },
    config: (md) => {
      resolveLinks(md);
      mendBlocks(md);
      addFirstScreen(md);
    },
  },
  themeConfig: {
    nav: [{ text: "Documentation", link: "/docs/" }],
    sidebar: sidebar(),
    outline: "deep",
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: repositoryUrl }],
    editLink: { pattern: `${repositoryUrl}/edit/main/:path` },
  },
  vite: {
    publicDir: join(root, "site/public"),
    // With the value "production", the playground would contain no texts of faults (src/config/faults.ts).
    define: { "globalThis.process.env.NODE_ENV": '"playground"' },
    resolve: {
      alias: ["cloudflare:workers", "node:net", "node:util"].map((find) => ({
        find,
        replacement: join(root, "site/playground/runtime.ts"),
      })),
    },
    worker: { format: "es" },
  },
});
