import { describe, expect, it } from "vitest";
import { markdownCode, markdownText } from "../../../cli/print/text.ts";

describe("markdownText and markdownCode", () => {
  it.each([
    ["a | b", "a &#124; b"],
    ["`code`", "&#96;code&#96;"],
    ["<script>", "&#60;script&#62;"],
    ["[x](https://example.com)", "&#91;x&#93;(https<!-- -->&#58;//example.com)"],
    ["www.example.com WWW.x", "www<!-- -->.example.com WWW<!-- -->.x"],
    ["one\ntwo\r\n> three", "one two &#62; three"],
    ["\u202Ertl\u200B", "rtl"],
    ["*a* _b_ ~c~ \\| &lt;", "&#42;a&#42; &#95;b&#95; &#126;c&#126; &#92;&#124; &#38;lt;"],
    ["Zürich 10 % (a, b); it's: 5", "Zürich 10 % (a, b); it's: 5"],
    ["at 10:05Z, not :100:", "at 10:05Z, not <!-- -->&#58;100<!-- -->&#58;"],
    [
      "at 10:05:20 UTC, not :10:20:30:",
      "at 10:05:20 UTC, not <!-- -->&#58;10<!-- -->&#58;20<!-- -->&#58;30<!-- -->&#58;",
    ],
    ["\ud800", "&#55296;"],
  ])("escape %j", (text, escaped) => {
    expect(markdownText(text)).toBe(escaped);
    expect(markdownCode(text)).toBe(`<code>${escaped}</code>`);
  });

  it.each([
    ["@user", "<code>&#64;</code>user", "<!-- -->&#64;user"],
    ["#12", "<code>&#35;</code>12", "&#35;12"],
    ["me@example.com", "me<code>&#64;</code>example.com", "me<!-- -->&#64;example.com"],
    ["- list", "&#45; list", "- list"],
    ["1. list", "1&#46; list", "1. list"],
  ])("escape %j, which means more outside of code", (text, asText, asCode) => {
    expect(markdownText(text)).toBe(asText);
    expect(markdownCode(text)).toBe(`<code>${asCode}</code>`);
  });

  it("shorten long texts before they are escaped", () => {
    expect(markdownCode("|".repeat(5000), 5)).toBe(`<code>${"&#124;".repeat(5)}...</code>`);
    expect(markdownCode("")).toBe("");
  });
});
