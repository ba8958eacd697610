"use strict";

// Unfold all details for printing, and fold them again afterwards.
{
  const folded = [];
  const unfold = (paper) => {
    if (paper.matches) {
      for (const details of document.querySelectorAll("details:not([open])")) {
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
