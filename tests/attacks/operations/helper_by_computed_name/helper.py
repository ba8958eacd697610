from torch.utils._python_dispatch import _disable_current_modes as quiet
