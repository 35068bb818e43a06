/** Words of questions, which stand on nearly every page, so that they say nothing about what is searched. */
const QUESTION_WORDS = new Set(
  "a an and are can do does for get how i if in is it me my of the to was what when where which who why with".split(
    " ",
  ),
);

/** How a query is read. These are functions, so they cannot stand in the configuration: the site forbids `eval`. */
export const searchOptions = {
  processTerm: (term: string) =>
    QUESTION_WORDS.has(term.toLowerCase()) ? null : term.toLowerCase(),
  // Short words and numbers with one other letter are other words: "409" is not meant by "429".
  fuzzy: (term: string) => (term.length > 4 && !/\d/.test(term) ? 0.2 : false),
};
