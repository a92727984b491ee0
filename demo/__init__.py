"""The screen: Gradio and no model. app.py hands it the core as a `Services`."""
