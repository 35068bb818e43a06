import { THEMES } from "../../src/admin/dashboard/ranges.ts";
import { ICON, SCRIPT, SCRIPT_SOURCE, STYLE, STYLE_SOURCE } from "./assets.generated.ts";
import { type Html, html, trusted } from "./components.ts";

/** The page may load nothing, and only its own script and style sheet apply. */
const POLICY = [
  "default-src 'none'",
  `script-src ${SCRIPT_SOURCE}`,
  `style-src ${STYLE_SOURCE}`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

export interface DocumentParts {
  readonly title: string;
  /** The command that made the report. */
  readonly command: string;
  readonly sections: readonly Section[];
  /** What stands above all sections. */
  readonly top: Html;
}

/** A part of a report. */
export interface Section {
  readonly id: string;
  /** The short name in the navigation. */
  readonly name: string;
  readonly heading: string;
  readonly content: Html;
}

/** Returns a whole report as one file: its style sheet, script and icon are in it. */
export function documentOf({ title, command, sections, top }: DocumentParts): string {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Weir</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
<style>${trusted(STYLE)}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<span class="brand"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M2 8q2.5-3 5 0t5 0t5 0t5 0M2 13q2.5-3 5 0t5 0t5 0t5 0M2 18q2.5-3 5 0t5 0t5 0t5 0"/></svg>Weir</span>
<nav aria-label="Sections">${sections.map(({ id, name }) => html`<a href="#${id}">${name}</a>`)}</nav>
${themeChoice()}
</header>
<main id="main" tabindex="-1">
${top}
${sections.map(section)}</main>
<footer><span class="grow">Made by <code>${command}</code></span><span>All times are UTC.</span></footer>
<script>${trusted(SCRIPT)}</script>
</body>
</html>
`;
  return page.toString();
}

function section({ id, heading, content }: Section): Html {
  return html`<section id="${id}" class="part" aria-labelledby="${id}-heading"><h2 id="${id}-heading">${heading}</h2>
${content}</section>
`;
}

/** The choice works without scripts and without storage: the style sheet reads which button is checked. */
function themeChoice(): Html {
  const choices = THEMES.map(({ id, label, path }, index) => {
    return html`<label title="${label}"><input class="hidden" type="radio" name="theme" id="theme-${id}"${index === 0 && html` checked`}><span class="hidden">${label}</span><svg viewBox="0 0 16 16" aria-hidden="true"><path d="${path}"/></svg></label>`;
  });
  return html`<fieldset class="themes"><legend class="hidden">Theme</legend>${choices}</fieldset>`;
}
