"use strict";

// Unfold details for printing, and fold them again afterwards. Quiet details, such as the tests that
// passed, stay as they are.
{
  const folded = [];
  const unfold = (paper) => {
    if (paper.matches) {
      for (const details of document.querySelectorAll("details:not([open], .quiet)")) {
        details.open = true;
        folded.push(details);
      }
    } else {
      while (folded.length) folded.pop().open = false;
    }
  };
  const paper = matchMedia("print");
  paper.addEventListener("change", unfold);
  unfold(paper);
}
