{
  const button = document.getElementById("unfold");
  const all = document.querySelectorAll("details");
  const folded = () => [...all].filter((details) => !details.open);
  const label = () => {
    button.textContent = folded().length ? "Unfold everything" : "Fold everything";
  };
  button.addEventListener("click", () => {
    const open = folded().length > 0;
    for (const details of all) details.open = open;
  });
  for (const details of all) details.addEventListener("toggle", label);
  button.hidden = false;
}

// A link to a folded exercise unfolds the exercise.
{
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = target?.closest("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
}
