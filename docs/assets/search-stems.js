/* The search of the theme finds words that begin with what is typed, so "logging" would not find "log". This adds the
   stem of each word to the query, with less weight, and leaves out the small words of a question. */
"use strict";
(() => {
  const QUERY = 2; // the kind of message by which the theme asks its worker
  const SMALL = /^(an?|and|are|can|do|does|for|from|how|i|in|is|it|my|of|on|or|the|to|what|when|why|with)$/i;
  const ENDS = /(abilit(y|ies)|ibilit(y|ies)|[ai]ble|ations?|i[sz](e[drs]?|ing|ations?)|ings?|ments?|ers?|ed|es|[esy])$/i;

  const widened = (query) => {
    if (/["+\-:~^*]/.test(query)) return query; // whoever writes operators means them
    const words = query.trim().split(/\s+/);
    const asked = words.some((word) => !SMALL.test(word)) ? words.filter((word) => !SMALL.test(word)) : words;
    return asked.map((word) => word.replace(/&/g, "&amp;")).flatMap((word) => {
      const stem = word.replace(ENDS, "").replace(/([bdgklmnprt])\1$/i, "$1");
      return stem === word || stem.length < 3 ? [word] : [`${word}*^8`, stem];
    }).join(" ");
  };

  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    const asks = message?.type === QUERY && typeof message.data === "string";
    return post.call(this, asks ? { ...message, data: widened(message.data) } : message, ...rest);
  };
})();
